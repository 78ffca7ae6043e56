// The clocks of a job's hosts, as far as what their ranks did together tells.
#pragma once

#include <cstdint>

#include "align/clocks.h"
#include "diagnose/meetings.h"

namespace tprof::diagnose {

struct HostClocks {
  align::Clocks clocks;
  std::uint64_t collectives = 0;  // of several hosts, that were timed on the device
  // Of these, as many contradict the clocks by more than a microsecond: a clock was set, or they
  // are not the same collective.
  std::uint64_t violated = 0;

  bool known() const { return collectives != 0; }
};

// Times on the device only: when a host's call began and returned proves nothing of other hosts.
HostClocks host_clocks(const Meetings& meetings);

}  // namespace tprof::diagnose
