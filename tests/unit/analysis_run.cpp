// run/: who met whom, and when a meeting ended on each host.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "analysis_traces.h"
#include "catch2.h"
#include "job/choice.h"
#include "read/folder.h"
#include "run/run.h"

using namespace tprof;
using namespace tprof::test;

namespace {

std::string on(int number, std::string_view id, int rank) {
  std::string text = comm(number, id);
  return text.replace(text.find(R"("rank":0)"), 8, fmt::format(R"("rank":{})", rank));
}

std::string message(std::string_view name, int comm, int peer) {
  return fmt::format(
      R"({{"name":"{}","cat":"P2P","ph":"X","pid":0,"tid":7,"ts":100.000,"dur":1.000,"args":{{)"
      R"("comm":{},"seq":0,"count":8,"dtype":"float32","bytes":32,"peer":{},"group":1}}}},)"
      "\n",
      name, comm, peer);
}

// A group's time on the device is told by the first of its calls.
std::string time_of_group(int from, int dur) {
  return fmt::format(
      R"({{"cat":"DEVICE","name":"ncclGroup","ph":"X","pid":0,"tid":8388610,"ts":{}.000,"dur":{}.000,)"
      R"("args":{{"comm":1,"seq":0,"stream":0,"call_tid":7,"queued":{}.000,"calls":2}}}},)"
      "\n",
      from, dur, from - 100);
}

}  // namespace

TEST_CASE("the sender of a message in a group is known by the message's own communicator") {
  // On the second communicator the ranks stand the other way round. Rank 1 sends what rank 0
  // receives there, and ends before rank 0 comes: a small message.
  const Folder folder;
  for (const int rank : {0, 1}) {
    const int peer = 1 - rank;
    std::string text = "[\n" + header({.pid = 100 + rank, .rank = std::to_string(rank)}) +
                       on(1, "aa", rank) + on(2, "bb", peer);
    if (rank == 0) text += message("ncclRecv", 1, 1) + message("ncclRecv", 2, 0);
    if (rank == 1) text += message("ncclSend", 1, 0) + message("ncclSend", 2, 1);
    text += rank == 0 ? time_of_group(500, 50) : time_of_group(200, 20);
    folder.write(fmt::format("rank-{}.json", rank), text + ledger("") + footer());
  }
  const read::Traces traces =
      read::load_all(read::trace_files({folder.path()}), [](std::size_t) {});
  const job::Job job = job::one_job(traces, {});
  const run::Run run = run::load(run::Lines(job, traces), {});
  REQUIRE(run.meetings() == 2);
  for (const run::Rank& rank : run.ranks) {
    REQUIRE(rank.calls.size() == 1);
    CHECK(rank.calls.is[0].met);
  }
}

TEST_CASE("the ranks of a host need not stand beside each other") {
  std::vector<align::Passage> hosts;
  for (const std::int64_t n : {1, 2, 3, 4, 5}) {
    align::add(hosts, n % 2 == 0 ? 1 : 0, true, 10 * n, true, 100 * n);
  }
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].mean_end == 300);  // of 100, 300 and 500
  CHECK(hosts[1].mean_end == 300);  // of 200 and 400
  CHECK(hosts[0].last_start == 50);
  CHECK(hosts[1].first_end == 200);
}
