// job/: which processes are one job.
#include "catch2.h"
#include "job/jobs.h"

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

// Each row: which of these processes, by their pids, are one job, in the order of the jobs. More
// jobs are in tool/test_jobs_beside.py.
struct Row {
  const char* name;
  std::vector<Given> given;
  std::vector<std::vector<std::int64_t>> together;
};

const Row kRows[] = {
    {"a run id connects disjoint groups of ranks",
     {{.rank = 0, .pid = 1, .comms = {"x"}, .world_size = 4},
      {.rank = 1, .pid = 2, .comms = {"x"}, .world_size = 4},
      {.rank = 3, .pid = 3, .comms = {"y"}, .world_size = 4}},
     {{1, 2, 3}}},
    {"a process without communicators joins the training that had begun before it",
     {{.rank = 0, .pid = 9, .comms = {}, .start_ns = 15},
      {.rank = 0, .pid = 1, .comms = {"x"}, .start_ns = 10},
      {.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 20}},
     {{1, 9}, {2}}},
    {"ranks of two hosts that meet at one place",
     {{.rank = 0, .pid = 1, .run_id = "", .launcher = 90, .rendezvous = "m", .boot_id = "a"},
      {.rank = 1, .pid = 2, .run_id = "", .launcher = 90, .rendezvous = "m", .boot_id = "b"}},
     {{1, 2}}},
    {"a rank's data loader belongs to it, whoever forked it",
     {{.rank = 0, .pid = 1, .run_id = "", .launcher = 90, .end_ns = 100},
      {.rank = 0, .pid = 2, .run_id = "", .start_ns = 5, .launcher = 1, .end_ns = 50},
      {.rank = 0, .pid = 3, .run_id = "", .start_ns = 60, .launcher = 1, .end_ns = 90}},
     {{1, 2, 3}}},
    {"what a rank did before the training is a run of its own",
     {{.rank = 0, .pid = 1, .start_ns = 1, .launcher = 90, .end_ns = 10},
      {.rank = 0, .pid = 2, .comms = {"x"}, .start_ns = 20, .launcher = 91, .end_ns = 30}},
     {{1}, {2}}},
    {"a restart",
     {{.rank = 0, .pid = 1, .comms = {"x"}},
      {.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 2, .restart = 1}},
     {{1}, {2}}},
    {"ranks that meet in two places, though none of them clash",
     {{.rank = 0, .pid = 1, .comms = {"x"}, .rendezvous = "m"},
      {.rank = 1, .pid = 2, .comms = {"x"}, .rendezvous = "m"},
      {.rank = 2, .pid = 3, .rendezvous = "m"},
      {.rank = 3, .pid = 4, .comms = {"y"}, .rendezvous = "n"}},
     {{1, 2, 3}, {4}}},
    {"an engine that a trainer started is a job of its own, and its loader is the engine's",
     {{.rank = 0, .pid = 1, .comms = {"x"}, .end_ns = 90},
      {.rank = 0, .pid = 2, .comms = {"y"}, .start_ns = 5, .launcher = 1, .end_ns = 90},
      {.rank = 0, .pid = 3, .start_ns = 6, .launcher = 2, .end_ns = 9}},
     {{1}, {2, 3}}},
};

}  // namespace

TEST_CASE("processes are put together into jobs") {
  for (const Row& row : kRows) {
    INFO(row.name);
    std::vector<read::Process> all;
    for (const Given& g : row.given) all.push_back(process(g));
    std::vector<std::vector<std::int64_t>> together;
    for (const job::Job& job : jobs(all)) {
      CHECK_FALSE(job.assumed);
      together.emplace_back();
      for (const read::Process* p : job.processes) together.back().push_back(p->header.pid);
    }
    CHECK(together == row.together);
  }
}
