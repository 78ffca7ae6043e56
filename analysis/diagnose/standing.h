// Describes where each process is at the end of a job.
#pragma once

#include <string>

#include "diagnose/waits.h"

namespace tprof::diagnose {

// "ncclAllReduce, collective 13 of communicator a3df…"
std::string name_of(const OpenCall& call);

// "rank 3 was inside ncclAllReduce, … since …"
std::string inside(const OpenCall& call);

// Says who made the call that somebody missed.
std::string callers(const Missed& missed);

// Adds evidence of where in the program these are and what the first of them did last, and says
// what to do next.
void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f);

}  // namespace tprof::diagnose
