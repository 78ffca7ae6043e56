// --ranks: a job's chosen ranks.
#pragma once

#include <optional>
#include <string>

#include "job/jobs.h"

namespace tprof::filter {

// lanes: also the other ranks of a process that holds several, whose header and ledger they share.
enum class Comes { alone, with_lanes };

// Says which of the ranks that were asked for are in the job, if not all are.
std::optional<std::string> absent_of(const std::string& ranks, const job::Job& job);

// Returns the job with these ranks alone, and none missing; all of it if the words are empty.
// Throws BadInput with the ranks that are there, if none of these is.
job::Job with_ranks(const job::Job& job, const std::string& ranks, Comes how = Comes::alone);

}  // namespace tprof::filter
