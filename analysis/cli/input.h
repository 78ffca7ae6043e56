// The jobs that the PATHs of a command line are about, and what options say of them.
#pragma once

#include <string>
#include <vector>

#include "check/finding.h"
#include "cli/commands.h"
#include "export/placement.h"
#include "filter/selection.h"
#include "interpose/base/not_copied.h"
#include "read/folder.h"
#include "why/peak.h"

namespace tprof::cli {

// Loads all traces, with progress on a terminal. Each process of a team loads a part, and all have
// them.
read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team = {},
                  read::Wanted wanted = read::Wanted::lines);

// A command's traces, the job that it is about, and that job's lines, with progress on a terminal
// when they are loaded.
struct Input : NotCopied {
  explicit Input(const Options& o) : Input(o, read::trace_files(o.paths)) {}
  Input(const Options& o, const std::vector<read::TraceFile>& files,
        read::Wanted wanted = read::Wanted::lines);

  const filter::Filter only;
  read::Traces traces;
  const job::Job job;
  const run::Lines lines;
};
run::Lines lines_of(const job::Job& job, const read::Traces& traces);

// Returns the folder of the run in ./tprof-traces that was begun last, and says which on standard
// error. Throws BadInput if there is none.
fs::path newest_run();

// Says on standard error that a folder of a job that is to be followed has no rank file yet, as
// people wait at the wrong one. Returns whether it said so: all that comes is the job's, then.
bool say_if_none_yet(const fs::path& folder);

// True of a file of ours that a new one may replace: it begins so.
bool begins_with(const fs::path& file, std::string_view text);

// Prints the findings about what was read on standard error, as other commands print them. Returns
// the exit code of a command that did all that it was asked with these traces.
int say_findings(const job::Job& job, const read::Traces& traces);

// Returns those of the chosen ranks, which have to be found before a filter leaves anything out of
// the ledgers.
check::Findings findings_of(const Input& input);

// Prints there what was asked for, and what is not exact for that. Nothing without a filter.
void say_filter(const filter::Selection& asked);

// Returns PATHs and a choice as they can be typed again.
std::string typed(const std::vector<fs::path>& paths, const job::Choice& choice = {});

trace_export::Clock clock_of(const Options& o);

// --peak: "400", or "intra=450,inter=50". Throws BadInput for anything else.
why::Peak peak_of(const std::string& text);

}  // namespace tprof::cli
