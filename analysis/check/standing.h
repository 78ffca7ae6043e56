// Tells where ranks stand, as facts for findings.
#pragma once

#include "check/waits.h"

namespace tprof::check {

// "ncclAllReduce, collective 13 of communicator a3df…"
Fact standing_in(const OpenCall& call);

// Sets since when the call was open, and how long before the end of the trace that is, if it is
// known.
void set_since(Fact& fact, const OpenCall& call);

// "rank 3 was inside ncclAllReduce, … since …"
Fact inside(const OpenCall& call);

// Says which ranks made the call that others missed.
Fact callers(const Missed& m);

// Says that these ranks missed what others wait in, or were refused there, and what they did.
Fact not_come(const Missed& m, const Processes& who, const Fact& then);

// Adds evidence: where in the program these ranks are, what the first of them did last, since when,
// and what to do next.
void add_standing(const Case& c, const Waits& waits, const Processes& who, Finding& f);

}  // namespace tprof::check
