// What is missing, incomplete or contradictory in the traces of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "match/jobs.h"
#include "read/folder.h"

namespace tprof::diagnose {

enum class Severity { note, warning, error };
inline constexpr const char* kSeverityNames[] = {"note", "warning", "error"};

struct Problem {
  std::string kind;
  Severity severity = Severity::note;
  std::vector<std::int64_t> ranks;
  std::string text;  // one sentence with its evidence
  std::string next;  // what to do; empty: nothing
};

// `skipped`: files that lay beside the job's and are not of it. `whole_job`: false where only the
// processes of one host were looked at, so that the others are not missing.
std::vector<Problem> problems(const match::Job& job, const std::vector<read::Skipped>& skipped,
                              bool whole_job);

// Every process closed, and no finding is an error.
bool complete(const match::Job& job, const std::vector<Problem>& problems);

// A process without its footer: until when its counts are known, as CLOCK_REALTIME.
std::int64_t known_until_ns(const read::Process& process);

}  // namespace tprof::diagnose
