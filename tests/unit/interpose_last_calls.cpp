// write/last_calls.h: what each thread and communicator called last, of rings that may have no
// lines.
#include "interpose/write/last_calls.h"

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "catch2.h"
#include "interpose_fake_writer.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// function, tid, seq and count (of a copy: bytes) of each tprof_last line
using Last = std::set<std::tuple<std::string, int, std::uint64_t, std::uint64_t>>;
Last last_calls(const View& view) {
  auto last = std::make_unique<LastCalls>();
  last->add_threads(view);
  Text text;
  last->lines(text, view, committed_block(view.head())->progress.tid);
  Last all;
  for (const std::string& line : split_lines(text.view())) {
    const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
    CHECK(json["name"] == "tprof_last");
    const auto& args = json["args"];
    const bool copy = !args.contains("seq");
    const bool fresh =
        all.emplace(args["function"], json["tid"], copy ? 0 : args["seq"].get<std::uint64_t>(),
                    args[copy ? "bytes" : "count"])
            .second;
    CHECK(fresh);
  }
  return all;
}

}  // namespace

TEST_CASE("the last calls are known whatever has lines, also when the ring was full") {
  const bool drained = GENERATE(true, false);
  World world;
  Thread& t = world.thread(11, 64);
  bool in_ring = false;
  Record& marker = next_record(t, true, in_ring);
  marker = {};
  marker.count = 11;
  publish(t, marker, kMetaThread, true);
  Transaction(t).close(marker);
  world.view().head().events = EventLines::off;
  ncclComm_t a = world.communicator(2);
  ncclComm_t b = world.communicator(4);
  FakeWriter writer(world.view());
  std::string file;
  writer.drain(file);  // the first record says whose ring it is
  for (int i = 0; i < 20; ++i) all_reduce(t, a, 100 + i);
  all_gather(t, b, 7);
  CHECK(last_calls(world.view()) ==
        Last{{"ncclAllReduce", 11, 19, 119}, {"ncclAllGather", 11, 0, 7}});
  // A refused call is the thread's last one, and no communicator's.
  all_reduce(t, b, 5, ncclInvalidArgument);
  CHECK(last_calls(world.view()) == Last{{"ncclAllReduce", 11, 19, 119},
                                         {"ncclAllGather", 11, 0, 7},
                                         {"ncclAllReduce", 11, 1, 5}});
  if (drained) writer.drain(file);
  for (int i = 0; i < 60; ++i) {
    all_gather(t, b, 10 + i);
    if (drained && i % 20 == 0) writer.drain(file);
  }
  copy_to_device(t, 4711);
  const Last last = last_calls(world.view());
  CHECK(last.contains({"cudaMemcpyAsync", 11, 0, 4711}));
  // With a full ring the communicator's last call is not there, and the ledger's number says so.
  CHECK(last.contains({"ncclAllGather", 11, 60, 69}) == drained);
  CHECK(count_lines(file, "X") == 0);
}
