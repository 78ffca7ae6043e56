// Finds which ranks the others waited for: who came last to collectives, and by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "check/arrivals.h"
#include "steps/found.h"
#include "text/kept.h"

namespace tprof::check {

// The lateness of a rank that comes last is the time since the last but one came, or since the last
// arrival at the collective before, if that was later. For so long nobody else was waited for. Sums
// run over communicators: a late rank is late on each one on which it is waited for.
struct LateRank {
  const read::Process* rank = nullptr;
  std::uint64_t collectives = 0;  // that it was compared in
  std::uint64_t last = 0;         // of these, to which it came last, by more than the clocks' error
  // Over those, ns.
  std::int64_t sum_ns = 0;
  // For how long anybody waited for it: what communicators share of a time counts once.
  std::int64_t waited_ns = 0;
  // The part of these that may be a wait of its host for a device: it had read values (`.item()`),
  // and most others had not. So it is not known whether the rank was late. The rest is its own.
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
  std::int64_t late_ns = 0;            // after the last but one
  std::int64_t spread_ns = 0;          // after the first
  std::int64_t called_ns = 0;          // when its host called, in its own time
  std::int64_t ts_ns = 0;              // when it came, in its own time
  std::int64_t realtime_ns = 0;        // the same, CLOCK_REALTIME
  std::optional<std::int64_t> step{};  // in which it called, if that is known
};

struct Lateness {
  bool on_device = false;  // arrivals are the devices' times; else the times of the hosts' calls
  // Ranks of different hosts were compared; else only the ranks of one host with each other.
  bool across_hosts = true;
  std::uint64_t rooted = 0;             // broadcasts and reduces, in which ranks don't all wait
  std::uint64_t collectives = 0;        // others, in which several ranks met
  std::uint64_t compared = 0;           // of these, with all of their ranks that have lines
  std::uint64_t untimed = 0;            // calls without a device time, if `on_device`
  std::uint64_t stride = 1;             // one in this many collectives was looked at
  std::int64_t span_ns = 0;             // from the first to the last arrival
  double at_most_ns = 0;                // the clocks' error, for the two hosts where it is largest
  std::vector<LateRank> ranks{};        // all that were compared, the largest sum first
  std::vector<LateArrival> arrivals{};  // all, by communicator and number, without their steps
  std::vector<LateArrival> worst{};     // the latest of these, the latest first
};

// Its latest arrivals have the steps in which the ranks called, as far as these were found.
Lateness lateness_of(const Arrivals& arrivals, const steps::Found& found = {});

}  // namespace tprof::check
