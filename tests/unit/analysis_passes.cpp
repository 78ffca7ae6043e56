// How often the lines of a job are read.
#include <atomic>

#include "analysis_traces.h"
#include "catch2.h"
#include "read/load.h"
#include "summary/summary.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string gather(int seq) {
  const std::string at = std::to_string(1 + seq * 10);
  return R"({"name":"ncclAllGather","cat":"ALLGATHER","ph":"X","pid":0,"tid":7,"ts":)" + at +
         R"(.000,"dur":2.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"count":50,"dtype":"uint8","bytes":100}},)"
         "\n"
         R"({"name":"ncclAllGather","cat":"DEVICE","ph":"X","pid":0,"tid":7,"ts":)" +
         at + R"(.500,"dur":3.000,"args":{"comm":1,"seq":)" + std::to_string(seq) +
         R"(,"calls":1,"queued_ns":500,"stream":1}},)" + "\n";
}

// Two ranks that issue the same gathers.
read::Traces two_ranks(const Folder& folder) {
  read::Traces traces;
  for (int rank = 0; rank < 2; ++rank) {
    std::string text = "[\n" + header({.pid = 100 + rank, .rank = std::to_string(rank)});
    text += comm(1, "aa");
    for (int seq = 0; seq < 40; ++seq) text += gather(seq);
    text += ledger(row("ALLGATHER", "ncclAllGather", "1", "direct", 40)) + footer();
    traces.traces.push_back(read::load(folder.write("r" + std::to_string(rank), text)));
  }
  return traces;
}

// How many files were read for a summary of two.
int files_read(stats::SummaryOptions options) {
  const Folder folder;
  const read::Traces traces = two_ranks(folder);
  std::vector<const read::Process*> processes;
  for (const read::Trace& t : traces.traces) processes.push_back(&t.processes[0]);
  const std::vector<job::Job> jobs = job::jobs_of(processes);
  REQUIRE(jobs.size() == 1);
  std::atomic<int> files{0};
  options.progress = [&](std::size_t) { ++files; };
  stats::summarise(jobs[0], traces, options);
  return files;
}

constexpr int kOnce = 2;

stats::SummaryOptions all_tables() {
  stats::SummaryOptions all;
  all.read_lines = all.phases = all.ranges = all.layers = all.sites = all.steps = true;
  all.lateness = all.op_times = true;
  all.top = 3;
  all.histogram = stats::HistogramOptions{.name = "ncclAllGather"};
  return all;
}

}  // namespace

TEST_CASE("a summary of counts reads no lines") {
  CHECK(files_read({}) == 0);
}

TEST_CASE("all tables together read the lines twice") {
  CHECK(files_read(all_tables()) == 2 * kOnce);
}

TEST_CASE("tables that need no steps read the lines once") {
  stats::SummaryOptions options;
  options.read_lines = options.ranges = options.sites = options.op_times = true;
  CHECK(files_read(options) == kOnce);
}

TEST_CASE("slow calls of some steps read the lines no more than a third time") {
  stats::SummaryOptions options = all_tables();
  options.histogram.reset();  // no step is known here, and bins of none are an error
  options.only_steps = stats::StepRange{};
  CHECK(files_read(options) <= 3 * kOnce);
}
