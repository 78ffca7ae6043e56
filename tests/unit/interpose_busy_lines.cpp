// write/drain.h: the lines that say when devices computed.
#include <nlohmann/json.hpp>

#include "catch2.h"
#include "interpose_fake_writer.h"

using namespace tprof;
using namespace tprof::test;

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
  CHECK(writer.progress().written.file[kRankFile].event_bytes <= 1000);

  World without;
  Thread& other = without.thread(1, 128);
  without.mapping().head().events = EventLines::off;
  computed(other, 1, 2, 1);
  std::string none;
  FakeWriter(without.view()).drain(none);
  CHECK(busy_lines(none).empty());
}
