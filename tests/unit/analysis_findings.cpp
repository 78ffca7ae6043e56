// Findings as values: they outlive the traces that they are from, and do not grow with the ranks.
#include <random>
#include <set>

#include "analysis_traces.h"
#include "catch2.h"
#include "check/diagnose.h"
#include "check/names.h"
#include "read/load.h"
#include "report/findings.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string call(const std::string& name, int seq) {
  return R"({"name":")" + name + R"(","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":)" +
         std::to_string(1 + seq * 10) + R"(.000,"dur":2.000,"args":{"comm":1,"seq":)" +
         std::to_string(seq) + R"(,"count":50,"dtype":"uint8","bytes":100}},)" + "\n";
}

// The first four collectives are the same on all ranks: their marks say so.
std::string collectives(const std::string& last) {
  return R"({"comm":1,"collectives":5,"signature":")" + last +
         R"(","marks":["0000000000000001","0000000000000002","0000000000000004"]})";
}

// Three of four ranks: rank 1 does another collective last, and rank 2 did not close.
read::Traces traces_of(const Folder& folder) {
  read::Traces traces;
  for (int rank = 0; rank < 3; ++rank) {
    std::string text =
        "[\n" + header({.pid = 100 + rank, .rank = std::to_string(rank), .world_size = "4"});
    text += comm(1, "a-communicator-with-a-name-that-no-string-holds-in-itself", "4");
    const std::string last = rank == 1 ? "ncclReduceScatterOfALongName" : "ncclAllGather";
    for (int seq = 0; seq < 5; ++seq) text += call(seq == 4 ? last : "ncclAllGather", seq);
    text += ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 5), 0,
                   collectives(rank == 1 ? "1111111111111111" : "2222222222222222"));
    if (rank != 2) text += footer();
    traces.traces.push_back(
        read::load(folder.write("a-file-with-a-rather-long-name-" + std::to_string(rank), text)));
  }
  return traces;
}

std::string text_of(const check::Findings& findings) {
  std::string all = report::to_json(findings, report::Detail::full).dump();
  for (const check::Finding& f : findings) all += report::to_text(f, report::Detail::full);
  return all;
}

}  // namespace

TEST_CASE("findings outlive the traces that they are from") {
  check::Findings findings;
  std::string before;
  {
    const Folder folder;
    const read::Traces traces = traces_of(folder);
    std::vector<const read::Process*> processes;
    for (const read::Trace& t : traces.traces) processes.push_back(&t.processes[0]);
    const std::vector<job::Job> jobs = job::jobs_of(processes);
    REQUIRE(jobs.size() == 1);
    findings = check::diagnose(jobs[0], traces, {}).findings;
    before = text_of(findings);
  }
  INFO(before);
  CHECK(before.find("did not close") != std::string::npos);
  CHECK(before.find("1 of 4 ranks has no trace: 3") != std::string::npos);
  CHECK(before.find("ncclReduceScatterOfALongName") != std::string::npos);
  CHECK(text_of(findings) == before);  // a sanitizer sees what is read of the traces
}

TEST_CASE("sets of ranks are what sets of numbers are") {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> numbers[2];
    std::set<std::int64_t> expected;
    for (auto& some : numbers) {
      for (int i = 0; i < 30; ++i) some.push_back(random() % 60);
      expected.insert(some.begin(), some.end());
    }
    text::Ranks ranks(numbers[0]);
    ranks.add(text::Ranks(numbers[1]));
    CHECK(ranks.list() == std::vector<std::int64_t>(expected.begin(), expected.end()));
    CHECK(ranks.size() == expected.size());
    CHECK(ranks == text::Ranks({expected.begin(), expected.end()}));
    for (std::int64_t n = -1; n < 61; ++n) CHECK(ranks.contains(n) == expected.contains(n));
  }
}

TEST_CASE("who a finding is about does not grow with the number of processes") {
  std::vector<read::Process> processes(100'000);
  check::Processes all;
  for (read::Process& p : processes) all.push_back(&p);
  const check::Who without = check::Who(all);
  CHECK((without.count == 100'000 && without.no_ranks == 100'000));
  CHECK(without.some.size() < 20);
  CHECK(check::names_of(without).ends_with(" processes that are no ranks"));

  for (std::size_t i = 0; i < processes.size(); ++i) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
  }
  const check::Who ranks = check::Who(all);
  CHECK(ranks.some.empty());
  CHECK(check::names_of(ranks) == "ranks 0-99999");
}

TEST_CASE("many ranks are counted, not listed") {
  std::vector<read::Process> processes(1000);
  std::vector<const read::Process*> odd;
  for (std::size_t i = 1; i < processes.size(); i += 2) {
    processes[i].header.rank = static_cast<std::int64_t>(i);
    odd.push_back(&processes[i]);
  }
  const std::string names = check::names_of(odd);
  CHECK(names.starts_with("ranks 1,3,5,"));
  CHECK(names.ends_with(",... (500 ranks)"));
  CHECK(names.size() < 130);
}
