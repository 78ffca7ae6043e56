// Which ranks the others waited for: who came last to collectives, and by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/passes.h"
#include "diagnose/host_clocks.h"
#include "diagnose/meetings.h"

namespace tprof::diagnose {

// A rank came last by what it was behind the last but one, or behind the end of the collective
// before where the others had called this one sooner: so long nobody else was waited for. Sums are
// over communicators: who is late is so to each that it is waited for on.
struct LateRank {
  const read::Process* rank = nullptr;
  std::uint64_t collectives = 0;  // that it was compared in
  std::uint64_t last = 0;         // of these, to which it came last by more than the clocks' error
  // Of those, ns.
  std::int64_t sum_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
};

struct LateArrival {
  std::string communicator;
  std::uint64_t seq = 0;
  Bucket bucket = Bucket::ALLREDUCE;
  const read::Process* rank = nullptr;
  std::int64_t late_ns = 0;            // behind the last but one
  std::int64_t spread_ns = 0;          // behind the first
  std::int64_t realtime_ns = 0;        // when it came
  std::optional<std::int64_t> step{};  // in which it called, where that is known
};

struct Lateness {
  bool on_device = false;  // from when devices came to the collectives; else from the hosts' calls
  // Ranks of different hosts were compared where they met; else those of one host alone.
  bool across_hosts = true;
  std::uint64_t collectives = 0;     // in which several ranks met that all wait for each other
  std::uint64_t compared = 0;        // of these: with all of their ranks that have lines
  std::uint64_t untimed = 0;         // with the device's times: calls that have none
  std::uint64_t stride = 1;          // of so many collectives one was looked at
  std::int64_t span_ns = 0;          // from the first to the last arrival
  double at_most_ns = 0;             // the clocks' error, of the two hosts for which it is largest
  std::vector<LateRank> ranks{};     // by their sum, the largest first; all that were compared
  std::vector<LateArrival> worst{};  // the latest arrivals, the latest first
};

Lateness lateness_of(const Meetings& meetings, const HostClocks& clocks);

// From the lines of the next pass. Files that can't be read are left out.
void want_lateness(collect::Passes& passes, std::optional<Lateness>& to);

}  // namespace tprof::diagnose
