// From the PATHs of a command line to the jobs that it is about.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "job/jobs.h"
#include "read/folder.h"
#include "stats/steps.h"

namespace tprof::cli {

// Loads all traces; progress on a terminal.
read::Traces load(const std::vector<read::TraceFile>& files);

std::vector<const read::Process*> processes_of(const read::Traces& traces);

// Which job a command is about, where the traces are of several.
struct Choice {
  std::string run;  // its run id, or the name that tprof gave it; empty: the last to start
  int attempt = 0;  // of that run, from 1; 0: the last
};

// Throws BadInput where there is none.
job::Job one_job(const read::Traces& traces, const Choice& choice);

// Of the processes of a job those of these ranks, or all where the list is empty. Throws BadInput
// where there are none.
std::vector<const read::Process*> processes_of(const job::Job& job, const std::string& ranks);

// What is to be said of what was read, on standard error.
void say_findings(const job::Job& job, const read::Traces& traces);

// As it can be typed again, with a space before it; empty: no choice was made.
std::string typed(const Choice& choice);

// Whether a list such as "0-3,7" has this rank. Throws std::invalid_argument that says what was
// expected.
bool is_listed(std::string_view ranks, std::int64_t rank);

// "10-", "3-7" or "5". Throws BadInput that says what was expected.
stats::StepRange steps_of(std::string_view text);

// PATHs as they can be typed again.
std::string quoted(const std::vector<std::filesystem::path>& paths);

}  // namespace tprof::cli
