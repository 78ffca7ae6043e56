// Writes the tables that need no event lines.
#pragma once

#include "export/exported.h"
#include "export/tables.h"

namespace tprof::trace_export {

void write_job(const Exported& of, TableWriter& to);
// Writes the process itself, its communicators, ledgers and steps.
void write_process(const Exported& of, const read::Process& process, TableWriter& to);

}  // namespace tprof::trace_export
