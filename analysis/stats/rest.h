// Splits what the ledgers leave together, the calls that no autograd thread made, by what the event
// lines tell of them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "collect/passes.h"
#include "stats/phase_names.h"
#include "stats/totals.h"
#include "steps/found.h"

namespace tprof::stats {

// The basis of a split: the program's NVTX ranges, the names of threads that only load data, or the
// order of calls within a step. none: it is what is left.
enum class ToldBy { range, thread, order, none };
inline constexpr std::string_view kToldByNames[] = {"range", "thread", "order", "none"};

struct Rest {
  // They add up to the ledgers' calls.
  std::map<std::pair<StepPhase, ToldBy>, Buckets> told{};
  // Ranks whose order tells nothing: not every call has a line, or threads have no name.
  std::vector<const read::Process*> unordered{};
};

// Reads the lines of the next pass, and refers to `found` until then. Calls in files that can't be
// read are `other`.
void want_rest(collect::Passes& passes, const steps::Found& found, std::optional<Rest>& to);

}  // namespace tprof::stats
