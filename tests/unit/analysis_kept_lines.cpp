// Lines that a pass keeps for the one after it: that one sees what the first has seen.
#include <climits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch2.h"
#include "collect/kept_lines.h"

using namespace tprof;
using collect::KeptLines;
using read::Busy;
using read::DeviceTime;
using read::Event;
using read::ThreadName;

namespace {

// Notes what was shown, and in which order.
struct Seen : collect::Collector {
  using Collector::Collector;
  void call(const Event& e) override { add("call", e); }
  void launch(const Event& e) override { add("launch", e); }
  void last_call(const Event& e) override { add("last", e); }
  void device_time(const DeviceTime& t) override {
    times.push_back(t);
    order += "time ";
  }
  bool wants_times() const override { return true; }
  void busy(const Busy& b) override {
    busies.push_back(b);
    order += "busy ";
  }
  bool wants_busy() const override { return true; }
  void thread(const ThreadName& t) override { order += t.name + std::to_string(t.thread) + " "; }
  void state(team::Archive&) override {}

  void add(const char* what, const Event& e) {
    events.push_back(e);
    order += std::string(what) + " ";
  }

  std::vector<Event> events;
  std::vector<DeviceTime> times;
  std::vector<Busy> busies;
  std::string order;
};

Event kept_event(const char* name, std::int64_t ts, std::int64_t dur, std::uint64_t seq) {
  Event e;
  e.name = name;
  e.ts_ns = ts;
  e.dur_ns = dur;
  e.seq = seq;
  e.numbered = true;
  e.comm = 1;
  return e;
}

// Shows a collector's lines to two: at once, and kept.
struct Both {
  read::Process rank{};
  collect::Collectors first{};
  collect::Collectors second{};
  collect::KeptOfJob kept{};
  Seen* seen = nullptr;
  Seen* again = nullptr;

  Both() {
    for (auto [all, which] : {std::pair(&first, &seen), std::pair(&second, &again)}) {
      collect::want<Seen>(rank, *all);
      *which = static_cast<Seen*>(all->begin()->second.get());
    }
    kept.want(rank, first);
  }
  template <typename Line>
  void show(void (collect::Collector::*see)(const Line&), const Line& line) {
    for (const auto& [type, collector] : first) (collector.get()->*see)(line);
  }
  const KeptLines* end() {
    for (const auto& [type, collector] : first) collector->end();
    return kept.of(rank);
  }
};

}  // namespace

TEST_CASE("what was kept is shown again: every field, in the order of the lines") {
  using collect::Collector;
  Both both;
  std::int64_t ts = 1;
  for (int i = 0; i < 3000; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    ts += i % 7 == 0 ? -3 : 1000 * i;
    Event e = kept_event(i % 3 == 0 ? "ncclAllGather" : "ncclAllReduce", ts, i % 5 - 1, n / 2);
    if (i % 11 == 0) e.reduce = "sum";
    if (i % 13 == 0) e.peer = i % 2;
    if (i % 17 == 0) e.chosen = false;
    if (i % 19 == 0) e.stream = std::nullopt;
    if (i % 6 < 2) e.group = i / 6 + 1;
    both.show(i % 50 == 7   ? &Collector::launch
              : i % 50 == 8 ? &Collector::last_call
                            : &Collector::call,
              e);
    DeviceTime t;
    t.name = e.name;
    t.ts_ns = ts + 17;
    t.dur_ns = 100 * i;
    t.queued_ns = 18;
    t.calls = n % 3;
    if (i % 4 != 0) t.seq = n;
    if (i % 4 == 1) t.comm = 2;
    both.show(&Collector::device_time, t);
    if (i % 10 == 0) {
      both.show(&Collector::busy,
                Busy{.device = i % 2, .ts_ns = ts, .dur_ns = i, .unsure = i == 0});
    }
    if (i % 1000 == 0) both.show(&Collector::thread, ThreadName{i, "thread"});
  }
  const std::int64_t kEnds[] = {INT64_MIN, INT64_MAX, 0, INT64_MIN};
  for (const std::int64_t end : kEnds) {
    both.show(&Collector::call,
              kept_event("ncclAllGather", end, end, static_cast<std::uint64_t>(end)));
  }
  const KeptLines* kept = both.end();
  REQUIRE(kept != nullptr);
  CHECK(kept->bytes() < 16 * kept->lines());
  kept->show(collect::Wanting(both.second));
  CHECK(both.again->order == both.seen->order);
  CHECK(both.again->events == both.seen->events);
  CHECK(both.again->times == both.seen->times);
  REQUIRE(both.again->busies.size() == both.seen->busies.size());
  for (std::size_t i = 0; i < both.seen->busies.size(); ++i) {
    const Busy& b = both.again->busies[i];
    const Busy& a = both.seen->busies[i];
    CHECK(std::tie(b.device, b.ts_ns, b.dur_ns, b.unsure) ==
          std::tie(a.device, a.ts_ns, a.dur_ns, a.unsure));
  }
  both.kept.let_go(both.rank);
  CHECK(both.kept.of(both.rank) == nullptr);
}

TEST_CASE("nothing is kept of short ranks, of lines that are all different, nor of open ranges") {
  Both few;
  few.show(&collect::Collector::call, kept_event("ncclAllGather", 1, 1, 1));
  CHECK(few.end() == nullptr);
  Both different;
  for (int i = 0; i < 5000; ++i) {
    Event e = kept_event("ncclAllGather", i, i, 0);
    e.bytes = static_cast<std::uint64_t>(i);
    different.show(&collect::Collector::call, e);
  }
  CHECK(different.end() == nullptr);
  Both open;
  for (int i = 0; i < 5000; ++i) {
    open.show(&collect::Collector::call, kept_event("ncclAllGather", i, i, 0));
    if (i == 9) open.show(&collect::Collector::open_range, read::Range{});
  }
  CHECK(open.end() == nullptr);
}
