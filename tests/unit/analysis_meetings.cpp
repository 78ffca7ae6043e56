// A collective is summed up in the same way, whatever the order in which the ranks are looked at.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analysis_traces.h"
#include "catch2.h"
#include "diagnose/meetings.h"
#include "read/load.h"

using namespace tprof;
using namespace tprof::test;

namespace {

constexpr int kRanks = 3;
// When each rank's call began and ended on the device, ns after the trace's base.
constexpr std::array<std::int64_t, kRanks> kStart = {100, 200, 200};
constexpr std::array<std::int64_t, kRanks> kEnd = {301, 302, 304};

// Ranks of one host with a device time each, so that the job counts as timed on the device.
std::string rank_file(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  std::string timed = row("ALLGATHER", "ncclAllGather", "1", "direct", 1);
  timed.replace(timed.find("device_timed\":0"), 15, "device_timed\":1");
  return "[\n" + header({.pid = 100 + rank, .rank = std::to_string(rank), .world_size = "3"}) +
         comm(1, "aa", "3") + event(0) +
         fmt::format(R"({{"cat":"DEVICE","name":"ncclAllGather","ph":"X","pid":0,"tid":7,)"
                     R"("ts":0.{},"dur":0.{},)",
                     kStart[at], kEnd[at] - kStart[at]) +
         R"("args":{"comm":1,"seq":0,"calls":1,"queued":0.000,"call_tid":7}},)"
         "\n" +
         ledger(timed, 0, R"({"comm":1,"collectives":1,"signature":"0","marks":[]})") + footer();
}

align::Passage met_in_order(const std::array<int, kRanks>& order) {
  const Folder folder;
  read::Traces traces;
  for (int rank = 0; rank < kRanks; ++rank) {
    traces.traces.push_back(read::load(folder.write("r" + std::to_string(rank), rank_file(rank))));
  }
  std::vector<const read::Process*> processes;
  for (const read::Trace& t : traces.traces) processes.push_back(&t.processes[0]);
  const std::vector<job::Job> jobs = job::jobs_of(processes);
  REQUIRE(jobs.size() == 1);
  job::Job job = jobs[0];
  for (std::size_t i = 0; i < kRanks; ++i) {
    job.processes[i] = processes[static_cast<std::size_t>(order[i])];
  }
  const diagnose::Meetings meetings(run::Lines(job, traces));
  REQUIRE(meetings.on_device());
  std::vector<align::Passage> passages;
  meetings.each([&](const diagnose::Meeting& m) { passages = diagnose::passages_of(m); });
  REQUIRE(passages.size() == 1);
  return passages[0];
}

}  // namespace

TEST_CASE("a collective's passage is the same in every order of the ranks") {
  std::array<int, kRanks> order = {0, 1, 2};
  const align::Passage first = met_in_order(order);
  CHECK(first.first_end + 1 == first.mean_end);  // 301, 302 and 304 after the base
  while (std::ranges::next_permutation(order).found) {
    const align::Passage other = met_in_order(order);
    CHECK(other.mean_end == first.mean_end);
    CHECK(other.first_end == first.first_end);
    CHECK(other.last_start == first.last_start);
  }
}
