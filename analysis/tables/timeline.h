// The calls and computation of some ranks in one step, on one axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/lines.h"
#include "steps/found.h"

namespace tprof::tables {

struct Bar {
  std::string name;
  Bucket bucket = Bucket::ALLGATHER;
  std::string communicator;  // id; empty: none
  std::uint64_t bytes = 0;
  std::int64_t ts_ns = 0;  // in the rank's own time
  std::int64_t dur_ns = 0;
};

struct TimelineRank {
  const read::Process* rank = nullptr;
  steps::Interval called{};  // the host's step
  std::int64_t from_ns = 0;  // of the step that is shown, in the rank's own time
  std::int64_t to_ns = 0;
  std::vector<Bar> bars{};     // the longest of those that ran in it
  std::uint64_t left_out = 0;  // of these, and untimed ones that were called in the host's step
};

// The end of a device's step is known to a ten-millionth of its length.
inline std::int64_t unseen_ns(const TimelineRank& step) {
  return (step.to_ns - step.from_ns) / 1'000'000;
}

struct Timeline {
  static constexpr std::size_t kMostRanks = 64;
  static constexpr std::size_t kMostBars = 240;  // of a rank

  std::string which;  // "slowest" or "typical"
  std::int64_t step = 0;
  std::int64_t length_ns = 0;
  bool on_device = false;  // the times are the device's; else those of the hosts' calls
  std::vector<TimelineRank> ranks{};
};

// Fills those of all timelines, from the lines of their ranks.
void fill_bars(const run::Lines& lines, std::vector<Timeline>& timelines);

}  // namespace tprof::tables
