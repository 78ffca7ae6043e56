// job/: which processes are one job.
#include "catch2.h"
#include "job/jobs.h"
#include "read/error.h"

using namespace tprof;

namespace {

struct Given {
  std::optional<std::int64_t> rank = 0;
  std::int64_t pid = 1;
  std::string run_id = "run";
  std::vector<std::string> comms = {};
  std::int64_t start_ns = 1;
  std::int64_t restart = 0;
  std::int64_t world_size = 2;
  std::int64_t launcher = 0;  // its pid
  std::string rendezvous = {};
  std::int64_t end_ns = 0;  // 0: not known
  std::string boot_id = {};
};

read::Process process(const Given& g) {
  read::Process p;
  p.file = "dir/rank-" + std::to_string(g.pid) + ".json";
  p.header.rank = g.rank;
  p.header.pid = g.pid;
  p.header.run_id = g.run_id;
  p.header.start_ns = p.header.base_time_ns = g.start_ns;
  p.header.restart = g.restart;
  p.header.world_size = g.world_size;
  if (g.launcher != 0) p.header.launcher = {g.launcher, 1};
  p.header.rendezvous = g.rendezvous;
  p.header.boot_id = g.boot_id;
  if (g.end_ns != 0) {
    p.end = read::End::closed;
    p.ledger.emplace().ts_ns = g.end_ns - g.start_ns;
  }
  for (const std::string& id : g.comms) {
    const auto number = static_cast<std::int64_t>(p.comms.size()) + 1;
    read::Comm& comm = p.comms[number];
    comm.comm = number;
    comm.id = id;
    comm.nranks = 2;
  }
  return p;
}

std::vector<job::Job> jobs(const std::vector<read::Process>& processes) {
  std::vector<const read::Process*> pointers;
  pointers.reserve(processes.size());
  for (const read::Process& p : processes) pointers.push_back(&p);
  return job::jobs_of(pointers);
}

}  // namespace

TEST_CASE("processes that share a communicator are one job whatever their run ids say") {
  const std::vector<read::Process> all = {
      process({.rank = 1, .pid = 1, .run_id = "a", .comms = {"x"}}),
      process({.rank = 0, .pid = 2, .run_id = "b", .comms = {"y", "x"}})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks == std::vector<std::int64_t>{0, 1});
  CHECK(found[0].processes[0]->header.pid == 2);
  CHECK(found[0].missing.empty());
}

TEST_CASE("a run id connects disjoint groups of ranks") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .comms = {"x"}, .world_size = 4}),
      process({.rank = 1, .pid = 2, .comms = {"x"}, .world_size = 4}),
      process({.rank = 3, .pid = 3, .comms = {"y"}, .world_size = 4})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].missing == std::vector<std::int64_t>{2});
}

TEST_CASE("two trainings under one run id are two jobs, since their ranks clash") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .comms = {"x"}, .start_ns = 10}),
      process({.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 20})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 2);
  CHECK(found[0].label == "run#1");
  CHECK(found[1].label == "run#2");
}

TEST_CASE("a restart is a job of its own") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .comms = {"x"}}),
      process({.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 2, .restart = 1})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 2);
  CHECK(found[1].label == "run.r1");
}

TEST_CASE("a process without communicators joins the training that had begun before it") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 9, .comms = {}, .start_ns = 15}),
      process({.rank = 0, .pid = 1, .comms = {"x"}, .start_ns = 10}),
      process({.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 20})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 2);
  REQUIRE(found[0].processes.size() == 2);
  CHECK(found[0].processes[1]->header.pid == 9);
  CHECK(found[0].ranks == std::vector<std::int64_t>{0});
}

TEST_CASE("different run ids without shared communicators are different jobs") {
  const std::vector<read::Process> all = {process({.rank = 0, .pid = 1, .run_id = "a"}),
                                          process({.rank = 1, .pid = 2, .run_id = "b"})};
  CHECK(jobs(all).size() == 2);
}

TEST_CASE("without run id and communicators the folder decides, and the job says so") {
  const std::vector<read::Process> all = {process({.rank = 0, .pid = 1, .run_id = ""}),
                                          process({.rank = 1, .pid = 2, .run_id = ""})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].assumed);
}

TEST_CASE("what one launcher started is no guess") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .run_id = "", .launcher = 90}),
      process({.rank = 1, .pid = 2, .run_id = "", .launcher = 90})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].assumed);
  CHECK(found[0].label == "unnamed");
}

TEST_CASE("ranks of two hosts that meet at one place are no guess") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .run_id = "", .launcher = 90, .rendezvous = "m", .boot_id = "a"}),
      process({.rank = 1, .run_id = "", .launcher = 90, .rendezvous = "m", .boot_id = "b"})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].assumed);
}

TEST_CASE("two jobs that only copied are two jobs, at once or one after the other") {
  for (const std::int64_t second : {5, 20}) {
    const std::vector<read::Process> all = {
        process({.rank = 0, .pid = 1, .run_id = "", .launcher = 90, .end_ns = 10}),
        process({.rank = 1, .pid = 2, .run_id = "", .launcher = 90, .end_ns = 10}),
        process(
            {.rank = 0, .pid = 3, .run_id = "", .start_ns = second, .launcher = 91, .end_ns = 30}),
        process(
            {.rank = 1, .pid = 4, .run_id = "", .start_ns = second, .launcher = 91, .end_ns = 30})};
    const auto found = jobs(all);
    REQUIRE(found.size() == 2);
    for (const job::Job& job : found) {
      CHECK(job.ranks == std::vector<std::int64_t>{0, 1});
      CHECK(job.processes.size() == 2);
      CHECK_FALSE(job.assumed);
    }
    CHECK(found[1].processes[0]->header.pid == 3);
    CHECK((found[0].attempt == 1 && found[1].attempt == (second == 20 ? 2 : 1)));
  }
}

TEST_CASE("a rank's data loader belongs to it, whoever forked it") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .run_id = "", .launcher = 90, .end_ns = 100}),
      process({.rank = 0, .pid = 2, .run_id = "", .start_ns = 5, .launcher = 1, .end_ns = 50}),
      process({.rank = 0, .pid = 3, .run_id = "", .start_ns = 60, .launcher = 1, .end_ns = 90})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  CHECK(found[0].processes.size() == 3);
  CHECK_FALSE(found[0].assumed);
}

TEST_CASE("what a rank did before the training, or after it, is a run of its own") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .start_ns = 1, .launcher = 90, .end_ns = 10}),
      process({.rank = 0, .pid = 2, .comms = {"x"}, .start_ns = 20, .launcher = 91, .end_ns = 30})};
  CHECK(jobs(all).size() == 2);
}

TEST_CASE("ranks that meet in two places are of two jobs, though none of them clash") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .comms = {"x"}, .rendezvous = "m"}),
      process({.rank = 1, .pid = 2, .comms = {"x"}, .rendezvous = "m"}),
      process({.rank = 2, .pid = 3, .rendezvous = "m"}),
      process({.rank = 3, .pid = 4, .comms = {"y"}, .rendezvous = "n"})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 2);
  CHECK(found[0].ranks.size() + found[1].ranks.size() == 4);
  CHECK((found[0].ranks.size() == 3 || found[1].ranks.size() == 3));
}

TEST_CASE("an engine that a trainer started is a job of its own, and its loader is the engine's") {
  const std::vector<read::Process> all = {
      process({.rank = 0, .pid = 1, .comms = {"x"}, .end_ns = 90}),
      process({.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 5, .launcher = 1, .end_ns = 90}),
      process({.rank = 0, .pid = 3, .start_ns = 6, .launcher = 2, .end_ns = 9})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 2);
  CHECK(found[0].processes.size() == 1);
  CHECK(found[1].processes.size() == 2);
  CHECK((found[0].attempt == 1 && found[1].attempt == 1));
}

TEST_CASE("groups with ranks of their own that a communicator joins are found in one job") {
  const std::vector<read::Process> all = {process({.rank = 0, .pid = 1, .comms = {"x", "feed"}}),
                                          process({.rank = 1, .pid = 2, .comms = {"x"}}),
                                          process({.rank = 0, .pid = 3, .comms = {"y", "feed"}}),
                                          process({.rank = 1, .pid = 4, .comms = {"y", "feed"}})};
  const auto found = jobs(all);
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].groups.size() == 2);
  CHECK((found[0].groups[0].size() == 2 && found[0].groups[1].size() == 2));
}

TEST_CASE("a copy of a file is refused by the names of both") {
  std::vector<read::Process> all = {process({.rank = 0, .pid = 1}), process({.rank = 0, .pid = 1})};
  all[1].file = "dir/copy.json";
  CHECK_THROWS_WITH(jobs(all), has_text("dir/copy.json") && has_text("dir/rank-1.json"));
}
