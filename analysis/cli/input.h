// The jobs in the PATHs of a command line, and the options for them.
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

// Loads all traces, with progress on a terminal. Each process of a team loads a share, and all get
// everything.
read::Traces load(const std::vector<read::TraceFile>& files, const team::Shared& team = {},
                  read::Wanted wanted = read::Wanted::lines);

// A command's traces, its job, and the job's lines, with progress on a terminal during loading.
struct Input : NotCopied {
  explicit Input(const Options& o) : Input(o, read::trace_files(o.paths)) {}
  Input(const Options& o, const std::vector<read::TraceFile>& files,
        read::Wanted wanted = read::Wanted::lines);

  filter::Filter only;
  read::Traces traces;
  const job::Job job;
  const run::Lines lines;
};
run::Lines lines_of(const job::Job& job, const read::Traces& traces);

// Returns the folder of the newest run in ./tprof-traces, and names it on standard error. Throws
// BadInput if there is none.
fs::path newest_run();

// Warns on standard error that a folder to be followed has no rank file yet, since it may be the
// wrong one. Returns whether it did: then all files that come are the job's.
bool say_if_none_yet(const fs::path& folder);

// True if the file begins with the text, so it is ours and may be replaced.
bool begins_with(const fs::path& file, std::string_view text);

// Prints findings about the traces on standard error. Returns the exit code of a command that does
// not judge the job: only files that were left out are an error.
int say_findings(const job::Job& job, const read::Traces& traces);

// Returns the findings about the chosen ranks. Call it before a filter reduces the ledgers.
check::Findings findings_of(const Input& input);

// Prints the filters and their limits on standard error; nothing without filters.
void say_filter(const filter::Selection& asked);

// Returns PATHs and a choice as words for a shell.
std::string typed(const std::vector<fs::path>& paths, const job::Choice& choice = {});

trace_export::Clock clock_of(const Options& o);

// --peak: "400", or "intra=450,inter=50". Throws BadInput for anything else.
why::Peak peak_of(const std::string& text);

}  // namespace tprof::cli
