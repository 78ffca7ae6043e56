// Plans a merged trace: where each process goes, and what is written beside it.
#pragma once

#include <map>
#include <vector>

#include "export/chrome.h"
#include "export/time_axis.h"

namespace tprof::trace_export {

using Members = std::map<const read::Process*, Member>;

// Decides where each process goes: its rank is its pid. Further processes of a rank, and those
// without one, get pids after the last rank.
Members placements(const job::Job& job, const TimeAxis& axis,
                   const std::vector<const read::Process*>& chosen,
                   const std::vector<OtherFile>& others);

std::vector<Part> parts_of(const read::Traces& traces, const Members& members);

// Puts each node's lanes behind the lowest rank of its host, since a reader takes lines for those
// of the process whose header comes before them.
void add_nodes(const std::vector<read::Trace>& nodes, std::vector<Part>& parts);

// Returns the traces of those processes that are left. They refer to `others`.
std::vector<Beside> placed(const std::vector<OtherFile>& others, const Members& members);

}  // namespace tprof::trace_export
