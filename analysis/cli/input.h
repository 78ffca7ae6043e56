// Turns the PATHs of a command line into the jobs that it is about.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "filter/selection.h"
#include "job/choice.h"
#include "read/folder.h"

namespace tprof::cli {

// Loads all traces, with progress on a terminal.
read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team = {},
                  read::Wanted wanted = read::Wanted::lines);
// Those that PATHs name; each process of a team loads a part, and all have them.
read::Traces load(const std::vector<std::filesystem::path>& paths, const team::Shared& team,
                  read::Wanted wanted = read::Wanted::lines);

// Returns the folder of the run in ./tprof-traces that was begun last, and says which on standard
// error. Throws BadInput if there is none.
std::filesystem::path newest_run();

// Says on standard error that a folder of a job that is to be followed has no rank file yet, as
// people wait at the wrong one. Returns whether it said so: all that comes is the job's, then.
bool say_if_none_yet(const std::filesystem::path& folder);

// The lines of a job, with progress on a terminal when they are loaded.
run::Lines lines_of(const job::Job& job, const read::Traces& traces);

// Prints the findings about what was read on standard error, as other commands print them.
void say_findings(const job::Job& job, const read::Traces& traces);

// Returns those of the chosen ranks, which have to be found before a filter leaves anything out of
// the ledgers.
diagnose::Findings findings_of(const job::Job& job, const read::Traces& traces,
                               const filter::Words& only);

// Prints there what was asked for, and what is not exact for that. Nothing without a filter.
void say_filter(const filter::Selection& asked);

// Returns the choice as it can be typed again, with a space before it. Empty if no choice was made.
std::string typed(const job::Choice& choice);

// Returns PATHs as they can be typed again.
std::string quoted(const std::vector<std::filesystem::path>& paths);

}  // namespace tprof::cli
