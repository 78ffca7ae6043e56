// In which phase of a step each call was, in memory that grows with the changes of phase alone.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "run/lines.h"
#include "stats/phase_names.h"
#include "steps/found.h"

namespace tprof::filter {

// The phases of the calls of each thread: of the calls from that moment on.
using PhaseRuns = std::map<std::int64_t, std::vector<std::pair<std::int64_t, stats::StepPhase>>>;

struct PhasesOfRanks {
  std::map<const read::Process*, PhaseRuns> ranks{};
  std::vector<const read::Process*> unordered{};  // whose order of calls tells nothing

  stats::StepPhase at(const read::Process& rank, std::int64_t thread, std::int64_t ts_ns) const;
};

// As `summary --by phase` tells them: backward is what autograd's threads called, and the other
// calls as far as ranges, threads and their order tell. Throws BadInput for a rank of which they
// can't be told.
PhasesOfRanks phases_of(const run::Lines& lines, const steps::Found& found);

}  // namespace tprof::filter
