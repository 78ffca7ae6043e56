// Collects how long calls and NVTX ranges of one name took, from the lines of a rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/lines.h"
#include "stats/samples.h"
#include "stats/started_ranges.h"
#include "stats/steps.h"
#include "stats/timed_calls.h"

namespace tprof::stats {

enum From { kHost, kDevice, kRange, kFroms };

struct Wanted {
  std::string name;
  std::optional<Bucket> bucket;  // set if `name` is a bucket's
  const steps::Found& found;
  std::optional<StepList> only;
  std::vector<std::uint64_t> edges{};  // empty: not known yet
};

struct Durations {
  static constexpr std::size_t kMostNames = 1000;

  Durations(const read::Process& rank, const Wanted& what) : rank_(rank), wanted(what) {}

  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed) return;
    name(e.name);
    if (wanted.bucket ? e.bucket != *wanted.bucket : e.name != wanted.name) return;
    if (!e.chosen || !in_steps(wanted.only, wanted.found, rank_, e.ts_ns)) return;
    of[kHost].add(not_below_0(e.dur_ns), 1, wanted.edges);
    calls.call(e);
  }
  void device_time(const read::DeviceTime& t) { calls.time(t); }
  void end() { calls.finish(); }

  void range(const read::Range& r) {
    if (wanted.bucket) return;
    using Phase = read::Range::Phase;
    if (r.phase == Phase::mark || r.phase == Phase::open) return;
    name(r.name);
    if (r.name != wanted.name) return;
    if (r.phase == Phase::started) return started.start(r);
    if (r.phase == Phase::closed) return range(r.ts_ns, r.dur_ns);
    if (const auto began_ns = started.end(r)) range(*began_ns, r.ts_ns - *began_ns);
  }
  void range(std::int64_t ts_ns, std::int64_t ns) {
    if (!in_steps(wanted.only, wanted.found, rank_, ts_ns)) return;
    of[kRange].add(not_below_0(ns), 1, wanted.edges);
  }
  void name(const std::string& seen) {
    if (names.size() < kMostNames) names.insert(seen);
  }

  const read::Process& rank_;
  const Wanted& wanted;
  std::array<Samples, kFroms> of;
  std::uint64_t shared = 0;
  std::set<std::string> names;  // candidates for a misspelt name
  StartedRanges started;
  TimedCalls calls{[this](const read::Event&, const read::DeviceTime* t) {
    if (t == nullptr) return;
    of[kDevice].add(not_below_0(t->dur_ns), t->calls, wanted.edges);
    if (t->calls > 1) shared += t->calls;
  }};
};

}  // namespace tprof::stats
