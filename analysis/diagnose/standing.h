// Where processes stand at the end of a job, in words.
#pragma once

#include <string>

#include "diagnose/waits.h"

namespace tprof::diagnose {

// "ncclAllReduce, collective 13 of communicator a3df…"
std::string name_of(const OpenCall& call);

// "rank 3 was inside ncclAllReduce, … since …"
std::string inside(const OpenCall& call);

// Who called what somebody missed.
std::string callers(const Missed& missed);

// Evidence of where in the program these are and what the first of them did last, and what to do.
void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f);

}  // namespace tprof::diagnose
