// How often the lines of a job are read.
#include <atomic>

#include "analysis_traces.h"
#include "catch2.h"
#include "filter/selection.h"
#include "job/choice.h"
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

TEST_CASE("filters that the ledgers decide read no lines, and phases read them three times") {
  const auto read_for = [](const filter::Words& words) {
    const Folder folder;
    read::Traces traces = two_ranks(folder);
    const job::Job job = job::one_job(traces, {});
    std::atomic<int> files{0};
    const filter::Selection asked(job, traces, filter::parsed(words),
                                  {.progress = [&](std::size_t) { ++files; }});
    return files.load();
  };
  CHECK(read_for({.ranks = "0"}) == 0);
  CHECK(read_for({.ops = "allg*", .comms = "aa"}) == 0);
  CHECK(read_for({.sizes = "1T-"}) == 0);
  CHECK(read_for({.phases = "other"}) == 3 * kOnce);  // steps, phases, and the calls in these
}
