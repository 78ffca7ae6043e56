// What the ledgers leave together: the calls that no autograd thread made, split by what the event
// lines tell of them.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "job/jobs.h"
#include "read/folder.h"
#include "stats/phase_names.h"
#include "stats/totals.h"
#include "steps/found.h"

namespace tprof::stats {

// What a split rests on: the program's NVTX ranges, the names of threads that only load data, or
// the order of calls within a step; none: it is what is left.
enum class ToldBy { range, thread, order, none };
inline constexpr std::string_view kToldByNames[] = {"range", "thread", "order", "none"};

struct Rest {
  // They add up to the ledgers' calls.
  std::map<std::pair<StepPhase, ToldBy>, Buckets> told{};
  // Ranks of which the order tells nothing: not every call has a line, or threads have no name.
  std::vector<const read::Process*> unordered{};
};

// Reads the lines. Files that can't be read are `other`.
Rest split_rest(const job::Job& job, const read::Traces& traces, const steps::Found& found);

}  // namespace tprof::stats
