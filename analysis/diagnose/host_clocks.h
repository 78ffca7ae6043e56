// The clocks of a job's hosts, as far as the collectives of their ranks determine them.
#pragma once

#include <cstdint>

#include "align/clocks.h"
#include "diagnose/meetings.h"

namespace tprof::diagnose {

struct HostClocks {
  align::Clocks clocks;
  std::uint64_t collectives = 0;  // across hosts, and timed on the device
  // How many of these contradict the clocks by more than a microsecond: a clock was set, or they
  // are not the same collective.
  std::uint64_t violated = 0;

  bool known() const { return collectives != 0; }
};

// Uses times on the device only: when a host's call began and returned proves nothing about other
// hosts. Several readers ask for the clocks of the same meetings, which fit them once.
const HostClocks& host_clocks(const Meetings& meetings);

// How wrong the distance between times of two hosts may be.
double error_ns(const Meetings& meetings, const align::Clocks& clocks, std::size_t a,
                std::size_t b);

}  // namespace tprof::diagnose
