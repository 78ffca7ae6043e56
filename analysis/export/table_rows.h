// Writes the rows of the tables.
#pragma once

#include "export/exported.h"
#include "export/tables.h"

namespace tprof::trace_export {

void write_job(const Exported& of, TableWriter& to);
// Writes the process itself, its communicators, ledgers and steps.
void write_process(const Exported& of, const read::Process& process, TableWriter& to);
// Writes what has a line of its own: calls with their device times, NVTX ranges, threads. Needs
// memory that does not grow with the trace's lines. Throws BadInput for a line that can't be read.
void write_lines(const Exported& of, const read::Trace& trace, TableWriter& to);

}  // namespace tprof::trace_export
