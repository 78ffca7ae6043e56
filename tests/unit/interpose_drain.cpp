// write/drain.h: from rings to lines, with the process killed in between at every point.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <tuple>

#include "catch2.h"
#include "interpose/base/fork.h"
#include "interpose_fake_writer.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// Counts event lines by thread, function and seq or bytes: each call of these tests has its own.
std::map<std::string, int> calls_in(const std::string& lines) {
  std::map<std::string, int> calls;
  for (const std::string& line : split_lines(lines)) {
    const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
    if (json["ph"] != "X") continue;
    const auto& args = json["args"];
    const auto number = args.contains("seq") ? args["seq"] : args["bytes"];
    ++calls[json["name"].get<std::string>() + std::to_string(json["tid"].get<int>()) + "." +
            number.dump()];
  }
  return calls;
}

}  // namespace

TEST_CASE("killed anywhere between drains, every finished call has exactly one line") {
  World world;
  Thread* threads[] = {&world.thread(11, 64), &world.thread(12, 128)};
  // The first record of an area says whose it is.
  for (Thread* t : threads) {
    bool in_ring = false;
    Record& r = next_record(*t, true, in_ring);
    r = {};
    r.count = t->area->tid;
    publish(*t, r, kMetaThread, true);
    Transaction(*t).close(r);
  }
  ncclComm_t comms_of[] = {world.communicator(2), world.communicator(2)};
  FakeWriter writer(world.view());
  std::string file;
  std::map<std::string, int> made;
  std::map<std::string, std::uint64_t> seq;
  std::size_t bytes = 0;
  std::mt19937 random(6);
  for (int step = 0; step < 600; ++step) {
    const std::size_t who = random() % 2;
    Thread& t = *threads[who];
    const std::string tid = std::to_string(11 + who);
    const auto made_collective = [&](const char* name) {
      made[name + tid + "." + std::to_string(seq[tid]++)] = 1;
    };
    switch (random() % 4) {
      case 0:
        all_reduce(t, comms_of[who], 1);
        made_collective("ncclAllReduce");
        break;
      case 1:
        copy_to_device(t, ++bytes);
        made["cudaMemcpyAsync" + tid + "." + std::to_string(bytes)] = 1;
        break;
      case 2:
        group_started(t);
        all_reduce(t, comms_of[who], 1);
        all_gather(t, comms_of[who], 1);
        CHECK(calls_in(recovered(world.view(), file)) == made);  // killed inside the group
        group_ended(t, 0, 0, ncclSuccess, false);
        made_collective("ncclAllReduce");
        made_collective("ncclAllGather");
        break;
      default:
        writer.drain(file);
    }
    if (step % 20 == 0) writer.drain(file);  // the rings must not fill up here
    REQUIRE(calls_in(recovered(world.view(), file)) == made);
    // A kill within a write leaves more in the file than was committed, cut anywhere.
    const std::string cut = file + recovered(world.view(), file).substr(file.size() / 2, 30);
    REQUIRE(recovered(world.view(), cut) == recovered(world.view(), file));
  }
  REQUIRE(drops(world.view()) == 0);
  writer.drain(file);
  CHECK(calls_in(file) == made);
}

TEST_CASE("no call has two lines across a recovery") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(1);
  FakeWriter writer(world.view());
  std::string file;
  for (int i = 0; i < 40; ++i) {
    all_reduce(t, comm, 1);
    if (i % 7 == 0) writer.drain(file);
  }
  std::map<int, int> ops;
  for (const std::string& line : split_lines(recovered(world.view(), file))) {
    const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
    if (json["ph"] == "X") ++ops[json["args"]["seq"].get<int>()];
  }
  CHECK(ops.size() == 40);
}

TEST_CASE("of two commit blocks the last whole one holds, and a half one never") {
  World world;
  Head& head = world.mapping().head();
  auto progress = std::make_unique<Progress>();
  for (std::uint64_t n = 1; n <= 6; ++n) {
    progress->written.calls = n;
    commit_progress(head, *progress);
    CommitBlock* now = committed_block(head);
    REQUIRE(now->progress.written.calls == n);
    // This is a kill while the other block is being written.
    CommitBlock& other = now == &head.commit[0] ? head.commit[1] : head.commit[0];
    const std::uint64_t before = other.generation;
    other.generation = now->generation + 1;
    other.progress.written.calls = 999;
    CHECK(committed_block(head) == now);
    other.generation = before;
  }
  head.commit[0].generation = 1;
  head.commit[1].generation = 0;
  CHECK(committed_block(head) == nullptr);
}

TEST_CASE("lines end with the quota, and what has none is counted") {
  for (const std::uint64_t quota : {1ULL, 500ULL, 4000ULL, 0ULL}) {
    World world;
    Thread& t = world.thread(1, 128);
    ncclComm_t comm = world.communicator(1);
    world.mapping().head().quota = quota;
    for (int i = 0; i < 50; ++i) all_reduce(t, comm, 1);
    FakeWriter writer(world.view());
    std::string file;
    writer.drain(file);
    const std::uint64_t lines = count_lines(file, "X");
    const std::uint64_t dropped =
        writer.progress().dropped[static_cast<std::size_t>(Dropped::quota)];
    CHECK(lines + dropped == 50);
    CHECK((quota == 0) == (dropped == 0));
    CHECK((quota == 0 || writer.progress().written.file[kRankFile].event_bytes <= quota));
    CHECK((lines > 0) == (quota != 1));
  }
}

TEST_CASE("with events off there is no event line and each call is counted as outside the window") {
  World world;
  Thread& t = world.thread(1, 128);
  world.mapping().head().events = EventLines::off;
  ncclComm_t comm = world.communicator(1);
  for (int i = 0; i < 20; ++i) all_reduce(t, comm, 1);
  FakeWriter writer(world.view());
  std::string file;
  writer.drain(file);
  CHECK(count_lines(file, "X") == 0);
  CHECK(writer.progress().dropped[static_cast<std::size_t>(Dropped::window)] == 20);
}

TEST_CASE("a call that has not returned is an open line, once, and no X") {
  World world;
  Thread& t = world.thread(7, 64);
  ncclComm_t comm = world.communicator(2);
  FakeWriter writer(world.view());
  all_reduce(t, comm, 5);
  std::string within;
  std::string open_lines;
  all_reduce(t, comm, 6, ncclFloat16, ncclMax, [&] {
    within = recovered(world.view(), "");
    Drain drain(world.view());
    drain.next = writer.progress();
    drain.open_calls(true);
    open_lines = drain.out().view();
    return ncclSuccess;
  });
  CHECK(count_lines(within, "X") == 1);
  CHECK(count_lines(open_lines, "B") == 1);
  const std::string line = split_lines(open_lines).back();
  const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
  CHECK(json["args"]["unfinished"] == true);
  CHECK(json["args"]["count"] == 6);
  CHECK(json["tid"] == 7);
}

TEST_CASE("a damaged ring file makes no reader crash or go on for ever") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(2);
  for (int i = 0; i < 60; ++i) all_reduce(t, comm, 1);
  auto* base = reinterpret_cast<std::byte*>(&world.mapping().head());
  const std::vector<std::byte> good(base, base + world.mapping().head().used.load());
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bad = good;
    for (int n = 0; n < 40; ++n) {
      // Spoils the head, whose offsets and sizes are believed; its name and paths are not numbers.
      const std::size_t where = (random() % (sizeof(Head) / 8)) * 8;
      std::uint64_t word = random() >> (random() % 64);
      std::memcpy(&bad[where], &word, 8);
    }
    bad.resize(random() % 4 == 0 ? sizeof(Head) + random() % 4096 : bad.size());
    const View view(bad.data(), bad.size());
    // More entries in the tables than there can be would only make it slow.
    view.head().comms.count = view.head().comms.count % 100000;
    view.head().graphs.count = view.head().graphs.count % 1000;
    Drain drain(view);
    for (int rounds = 0; rounds < 10 && !drain.run(); ++rounds) {
      for (Text& text : drain.text) text.clear();
    }
    drain.open_calls(true);
    drain.end(0, true, Complete::no);
    REQUIRE_FALSE(drain.out().failed());
  }
}

TEST_CASE("a function behind those that a record can name is in the footer, without calls") {
  World world;
  Thread& t = world.thread(1, 64);
  Head& head = World::mapping().head();
  head.functions = 300;
  std::strcpy(head.library[0], "/lib/libcuda.so.1");
  head.libraries = 1;
  std::strcpy(head.function[kMetaLaunch].name, "cuAnything");
  head.function[kMetaLaunch].library = 1;
  std::strcpy(head.function[299].name, "cuLast");
  head.function[299].library = 1;
  {
    Transaction transaction(t);
    transaction.values(key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, 0)).calls = 5;
  }
  Sums sums;
  Text text;
  const View view = World::view();
  ledger_line(text, view, sums, 0, 0, "close", true);
  footer_line(text, view, sums, *std::make_unique<Progress>(), Complete::yes);
  const std::string_view lines(text.data(), text.size());
  const auto listed = [&](std::string_view name) {
    return lines.find("{\"name\":\"" + std::string(name) +
                      "\",\"library\":\"/lib/libcuda.so.1\",\"calls\":0}") !=
           std::string_view::npos;
  };
  REQUIRE(listed("cuAnything"));
  REQUIRE(listed("cuLast"));
}
