// Turns the PATHs of a command line into the jobs that it is about.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "job/choice.h"
#include "read/folder.h"
#include "stats/steps.h"

namespace tprof::cli {

// Loads all traces, with progress on a terminal.
read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team = {});
// Those that PATHs name; each process of a team loads a part, and all have them.
read::Traces load(const std::vector<std::filesystem::path>& paths, const team::Shared& team);

// Returns the processes of a job that have these ranks, or all of them if the list is empty. Throws
// BadInput if there are none.
std::vector<const read::Process*> processes_of(const job::Job& job, const std::string& ranks);

// Prints the findings about what was read, on standard error.
void say_findings(const job::Job& job, const read::Traces& traces);

// Returns the choice as it can be typed again, with a space before it. Empty if no choice was made.
std::string typed(const job::Choice& choice);

// True if a list such as "0-3,7" has this rank. Throws std::invalid_argument that says what was
// expected.
bool is_listed(std::string_view ranks, std::int64_t rank);

// Parses "10-", "3-7" or "5". Throws BadInput that says what was expected.
stats::StepRange steps_of(std::string_view text);

// Returns PATHs as they can be typed again.
std::string quoted(const std::vector<std::filesystem::path>& paths);

}  // namespace tprof::cli
