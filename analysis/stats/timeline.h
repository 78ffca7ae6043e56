// The calls and computation of some ranks in one step, on one axis.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collect/passes.h"
#include "steps/found.h"

namespace tprof::stats {

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
  std::int64_t from_ns = 0;  // of the step, in the rank's own time
  std::int64_t to_ns = 0;
  std::vector<Bar> bars{};  // the longest ones
  std::uint64_t left_out = 0;
};

struct Timeline {
  static constexpr std::size_t kMostRanks = 64;
  static constexpr std::size_t kMostBars = 240;  // of a rank

  std::string which;  // "slowest" or "typical"
  std::int64_t step = 0;
  bool on_device = false;  // the times are the device's; else those of the hosts' calls
  std::vector<TimelineRank> ranks{};
};

// Fills the bars of all of them. Reads the lines of the next pass, of these ranks only, and refers
// to `to` until then.
void want_timelines(collect::Passes& passes, std::vector<Timeline>& to);

}  // namespace tprof::stats
