// Merges only what was asked for, and tells how large the result will be.
#pragma once

#include <cstdint>
#include <vector>

#include "export/merge_plan.h"
#include "filter/selection.h"

namespace tprof::trace_export {

// Leaves out lines of other calls, their device times, and what is of other steps. The members
// refer to `asked` from here on.
void add_filter(Members& members, const filter::Selection& asked);

// Bytes of a merged trace of these processes before compression: by the sizes of their files, and
// of each rank's the share that its chosen calls are of all that have a line.
std::uint64_t estimated_bytes(const read::Traces& traces,
                              const std::vector<const read::Process*>& chosen,
                              const filter::Selection& asked);

}  // namespace tprof::trace_export
