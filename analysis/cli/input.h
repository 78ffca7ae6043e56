// From the PATHs of a command line to the jobs that it is about.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "match/jobs.h"
#include "read/folder.h"

namespace tprof::cli {

// Loads all traces; progress on a terminal.
read::Traces load(const std::vector<read::TraceFile>& files);

std::vector<const read::Process*> processes_of(const read::Traces& traces);

// The one job of the traces, or the one that `run` names. Throws BadInput where that is not one.
match::Job one_job(const read::Traces& traces, const std::string& run);

// PATHs as they can be typed again.
std::string quoted(const std::vector<std::filesystem::path>& paths);

}  // namespace tprof::cli
