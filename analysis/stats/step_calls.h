// The calls of each kind in each step of a job, with their times.
#pragma once

#include <cstdint>
#include <map>

#include "run/lines.h"
#include "stats/op_kind.h"
#include "steps/found.h"

namespace tprof::stats {

// Sums over ranks.
struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t device_timed = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t device_bytes = 0;  // of the timed calls

  CallSums& operator+=(const CallSums& more);
};

struct StepCalls {
  double host_ns = 0;         // its length: sum over the hosts that don't run ahead of others
  std::uint64_t hosts = 0;    // these
  double device_ns = 0;       // its length, the mean over the devices; 0: not known
  std::uint64_t ranks = 0;    // that made it
  std::uint64_t calling = 0;  // those of them whose calls in it are known
  std::map<OpKind, CallSums> kinds;
};

// By the number of the step: the last ones of a long run, which bounds what is kept.
using CallsBySteps = std::map<std::int64_t, StepCalls>;
inline constexpr std::size_t kMostStepsKept = 4096;

// Counts calls that were executed directly: as the ranks' writers counted them, else as their lines
// tell.
CallsBySteps step_calls(const run::Lines& lines, const steps::Found& found, const OpKinds& kinds);

}  // namespace tprof::stats
