// Finds the ranks that others waited for: who came last to collectives, and by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "check/arrivals.h"
#include "steps/found.h"
#include "text/kept.h"

namespace tprof::check {

// The lateness of the last rank is the time since the last but one came, or since the last arrival
// at the previous collective if that was later: during it all others waited for this rank only.
// Sums run over communicators: a late rank is late on each communicator.
struct LateRank {
  const read::Process* rank = nullptr;
  std::uint64_t collectives = 0;  // in which it was compared
  std::uint64_t last = 0;         // those in which it came last by more than the clocks' error
  // Over these, ns.
  std::int64_t sum_ns = 0;
  // For how long anybody waited for it: times that communicators share count once.
  std::int64_t waited_ns = 0;
  // The parts of both sums in which its host may have waited for its device: it had read values
  // (`.item()`) and most others had not, so it is unknown whether the rank was late. The rest is
  // its own lateness.
  std::int64_t sum_read_ns = 0;
  std::int64_t waited_read_ns = 0;
  std::int64_t own_ns() const { return sum_ns - sum_read_ns; }
  std::int64_t median_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
  // CLOCK_REALTIME of the first and the last of these arrivals.
  std::int64_t first_realtime_ns = 0;
  std::int64_t last_realtime_ns = 0;
};

struct LateArrival {
  text::Kept communicator;
  std::uint64_t seq = 0;
  Bucket bucket = Bucket::ALLREDUCE;
  const read::Process* rank = nullptr;
  std::int64_t late_ns = 0;            // after the last but one rank
  std::int64_t spread_ns = 0;          // after the first
  std::int64_t called_ns = 0;          // when its host called, on its own clock
  std::int64_t ts_ns = 0;              // when it came, on its own clock
  std::int64_t realtime_ns = 0;        // the same, CLOCK_REALTIME
  std::optional<std::int64_t> step{};  // in which its host called, if known
};

struct Lateness {
  bool on_device = false;  // arrivals are device times; else times of host calls
  // Ranks of different hosts were compared; else only ranks of the same host.
  bool across_hosts = true;
  std::uint64_t rooted = 0;             // broadcasts and reduces, in which not all ranks wait
  std::uint64_t collectives = 0;        // other collectives of several ranks
  std::uint64_t compared = 0;           // those compared with all of their ranks that have lines
  std::uint64_t untimed = 0;            // calls without a device time, if `on_device`
  std::uint64_t stride = 1;             // every stride-th collective was compared
  std::int64_t span_ns = 0;             // from the first to the last arrival
  double at_most_ns = 0;                // the clocks' error, for the worst pair of hosts
  std::vector<LateRank> ranks{};        // all compared ranks, the largest sum first
  std::vector<LateArrival> arrivals{};  // by communicator and number, without steps
  std::vector<LateArrival> worst{};     // the latest, in descending order
};

// `worst` gets the steps in which the ranks called, as far as found.
Lateness lateness_of(const Arrivals& arrivals, const steps::Found& found = {});

}  // namespace tprof::check
