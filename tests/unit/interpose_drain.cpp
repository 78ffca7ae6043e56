// lines/drain.h: from rings to lines, with the process killed in between at every point.
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
#include "interpose/base/largest_page.h"
#include "interpose/format/commit.h"
#include "interpose/lines/last_calls.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// Does the writer's work without its thread and file.
class FakeWriter {
 public:
  explicit FakeWriter(const View& view)
      : view_(view),
        progress_(std::make_unique<Progress>(committed_block(view.head())->progress)) {}

  // Lines go to the file first, and are true once committed.
  void drain(std::string& file) {
    Drain drain(view_);
    bool more = true;
    while (more) {
      Text text;
      std::uint64_t events = 0;
      more = !drain.run(text, *progress_, events);
      file.resize(progress_->offset);
      file += text.view();
      progress_->offset = file.size();
      commit_progress(view_.head(), *progress_);
      for (std::uint32_t i = 0; i < view_.threads(); ++i) {
        view_.thread(i)->tail = progress_->tail[i];
      }
    }
  }
  const Progress& progress() const { return *progress_; }

 private:
  View view_;
  std::unique_ptr<Progress> progress_;
};

// Recovers as a reader does after a kill: cuts the file at the commit block and replays the ring.
std::string recovered(const View& live, const std::string& file) {
  auto* base = reinterpret_cast<std::byte*>(&live.head());
  std::vector<std::byte> memory(base, base + live.head().used.load());
  const View view(memory.data(), memory.size());
  std::string whole = file.substr(0, committed_block(view.head())->progress.offset);
  FakeWriter(view).drain(whole);
  return whole;
}

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

std::uint64_t count_lines(const std::string& lines, std::string_view phase) {
  std::uint64_t n = 0;
  for (const std::string& line : split_lines(lines)) {
    n += line.find("\"ph\":\"" + std::string(phase) + "\"") != std::string::npos;
  }
  return n;
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

TEST_CASE("a ring grows until it is as large as it may be, and no record is lost or moved") {
  const int file = memfd_create("ring", 0);
  {
    World world(file);
    Thread& t = world.thread(1, 64, 1024);
    ncclComm_t comm = world.communicator(1);
    FakeWriter writer(world.view());
    std::string lines;
    std::uint64_t larger = 64;
    for (int i = 0; i < 3000; ++i) {
      all_reduce(t, comm, 1);
      // Drained or not, the ring grows where its end is reached for the first time.
      if (i % 700 == 699) writer.drain(lines);
      while (larger <= static_cast<std::uint64_t>(i) && larger < 1024) larger *= 2;
      REQUIRE(t.area->capacity == larger);
    }
    writer.drain(lines);
    CHECK(drops(world.view()) == 0);
    CHECK(calls_in(lines).size() == 3000);
  }
  close(file);
}

TEST_CASE("a ring whose file has no more room stays as it is, and drops are counted") {
  // A ring of this size fills pages, so that a larger one needs more of them.
  constexpr std::uint32_t kFirst = 64 * (kLargestPage / 4096);
  const int file = memfd_create("ring", 0);
  {
    World world(file);
    Thread& t = world.thread(1, kFirst, 16 * kFirst);
    ncclComm_t comm = world.communicator(1);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    for (std::uint32_t i = 0; i < kFirst + 36; ++i) all_reduce(t, comm, 1);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(t.area->capacity == kFirst);
    CHECK(drops(world.view()) == 36);
    FakeWriter writer(world.view());
    std::string lines;
    writer.drain(lines);
    CHECK(calls_in(lines).size() == kFirst);
    // The ring grows when there is room again, where that leaves each record in its place.
    for (std::uint32_t i = 0; i < 2 * kFirst + 1; ++i) {
      all_reduce(t, comm, 1);
      writer.drain(lines);
    }
    CHECK(t.area->capacity == 4 * kFirst);
    CHECK(drops(world.view()) == 36);
    CHECK(calls_in(lines).size() == 3 * kFirst + 1);
  }
  close(file);
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
    progress->offset = n;
    commit_progress(head, *progress);
    CommitBlock* now = committed_block(head);
    REQUIRE(now->progress.offset == n);
    // This is a kill while the other block is being written.
    CommitBlock& other = now == &head.commit[0] ? head.commit[1] : head.commit[0];
    const std::uint64_t before = other.generation;
    other.generation = now->generation + 1;
    other.progress.offset = 999;
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
    CHECK((quota == 0 || writer.progress().lines_bytes <= quota));
    CHECK((lines > 0) == (quota != 1));
  }
}

TEST_CASE("with events off there is no event line and each call is counted as outside the window") {
  World world;
  Thread& t = world.thread(1, 128);
  world.mapping().head().events = static_cast<std::uint32_t>(EventLines::off);
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
    Text text;
    auto progress = std::make_unique<Progress>(writer.progress());
    Drain(world.view()).open_calls(text, *progress, true);
    open_lines = text.view();
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
    auto progress = std::make_unique<Progress>();
    Text text;
    std::uint64_t events = 0;
    for (int rounds = 0; rounds < 10 && !Drain(view).run(text, *progress, events); ++rounds) {
      text.clear();
    }
    Drain(view).open_calls(text, *progress, true);
    Sums sums;
    ledger_line(text, view, sums, 0, 0, "close", true);
    footer_line(text, view, sums, *progress, Complete::no);
    REQUIRE_FALSE(text.failed());
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
  world.view().head().events = static_cast<std::uint32_t>(EventLines::off);
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

namespace {

// Has the timing thread tell that a device computed; times in us.
void computed(Thread& t, std::uint64_t from, std::uint64_t to, std::uint64_t idle_from,
              bool unsure = false) {
  Transaction transaction(t);
  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  REQUIRE(in_ring);
  r = {};
  r.start_ns = from * 1000;
  set_outcome(r, (to - from) * 1000, 0);
  set_comm(r, 2 + 1);
  set_busy(r, idle_from * 1000, unsure);
  publish(t, r, kMetaBusy, true);
  transaction.close(r);
}

// The lines of what devices computed: "100+50" for 50 us from 100 on, with "?" where it is unsure.
std::string busy_lines(const std::string& file) {
  std::string words;
  for (const std::string& line : split_lines(file)) {
    const auto json = nlohmann::json::parse(line.substr(0, line.rfind(',')));
    if (!json.contains("cat") || json["cat"] != "BUSY") continue;
    CHECK(json["args"]["device"] == 2);
    CHECK(json["tid"] == kBusyLane + 2);
    words += (words.empty() ? "" : " ") + std::to_string(json["ts"].get<int>()) + "+" +
             std::to_string(json["dur"].get<int>()) + (json["args"].contains("unsure") ? "?" : "");
  }
  return words;
}

void add_window(World& world, std::uint64_t from, std::uint64_t to) {
  Windows& windows = world.mapping().head().windows;
  set_schedule(windows, kByControl);
  open_window(windows, from * 1000, -1);
  if (to != 0) last_window(windows)->to_ns = to * 1000;
}

}  // namespace

TEST_CASE("what a device computed has lines in order, and its lane a name once") {
  World world;
  Thread& t = world.thread(1, 128);
  computed(t, 100, 150, 100);
  computed(t, 150, 170, 150, true);
  computed(t, 300, 300, 170, true);
  FakeWriter writer(world.view());
  std::string file;
  writer.drain(file);
  CHECK(busy_lines(file) == "100+50 150+20? 300+0?");
  const std::string name = R"("name":"thread_name","ph":"M","pid":0,"tid":12582914,"args":)"
                           R"({"name":"compute, device 2"})";
  CHECK(file.find(name) != std::string::npos);
  CHECK(file.find(name) == file.rfind(name));
  CHECK(busy_lines(recovered(world.view(), file)) == busy_lines(file));
}

TEST_CASE(
    "what a device computed is cut to windows, and they tell that it was idle up to their end") {
  World world;
  Thread& t = world.thread(1, 128);
  computed(t, 10, 50, 10);   // before all windows
  computed(t, 90, 120, 50);  // into the first
  computed(t, 150, 160, 120);
  computed(t, 250, 310, 160);  // behind it, into the second
  computed(t, 380, 500, 310);  // out of it
  computed(t, 500, 590, 500, true);
  computed(t, 595, 620, 590);  // into the third
  computed(t, 700, 700, 620, true);
  add_window(world, 100, 200);
  add_window(world, 300, 400);
  add_window(world, 600, 0);
  FakeWriter writer(world.view());
  std::string file;
  writer.drain(file);
  CHECK(busy_lines(file) == "100+20 150+10 200+0? 300+10 380+20 600+20 700+0?");
}

TEST_CASE("behind the quota no line says that a device computed, however short it is") {
  World world;
  Thread& t = world.thread(1, 128);
  world.mapping().head().quota = 1000;
  for (std::uint64_t i = 0; i < 20; ++i) {
    computed(t, 1'000'000 * i, 1'000'000 * i + (i < 10 ? 999'999 : 1), 1'000'000 * i);
  }
  FakeWriter writer(world.view());
  std::string file;
  writer.drain(file);
  const std::string words = busy_lines(file);
  CHECK(words.starts_with("0+999999 1000000+999999 "));
  CHECK(words.find("+1 ") == std::string::npos);
  CHECK(!words.ends_with("+1"));
  CHECK(writer.progress().lines_bytes <= 1000);

  World without;
  Thread& other = without.thread(1, 128);
  without.mapping().head().events = static_cast<std::uint32_t>(EventLines::off);
  computed(other, 1, 2, 1);
  std::string none;
  FakeWriter(without.view()).drain(none);
  CHECK(busy_lines(none).empty());
}
