// Writes the tables of what has a line of its own: calls with their device times, NVTX ranges,
// threads.
#pragma once

#include "export/exported.h"
#include "export/tables.h"

namespace tprof::trace_export {

// Needs memory that does not grow with the trace's lines. Throws BadInput for a line that can't be
// read.
void write_lines(const Exported& of, const read::Trace& trace, TableWriter& to);

}  // namespace tprof::trace_export
