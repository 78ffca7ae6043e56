// ncclGroupStart/End: the outermost End issues the calls between them, or none.
#pragma once

#include <nccl.h>

#include "interpose/record/held_call.h"
#include "interpose/record/thread.h"
#include "interpose/session/session.h"

namespace tprof {

// Returns the thread that counts the depth of groups, or null. A group may begin before any call
// counts: this does not begin the session.
inline Thread* grouping_thread() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (!t.at_rest() || number == session::kOff) return nullptr;
  if (t.groups_of != number || number == 0) [[unlikely]]
    forget_groups(t);
  return &t;
}

void group_started(Thread& t);

// Holds a call until its group ends. `r`: its record, in or outside the ring.
void add_to_group(Thread& t, const GroupedCall& call, Record& r);

// True if the End was not the outermost, or had no Start: nothing else is to be done.
inline bool inner_group_ended(Thread& t) {
  if (t.group_depth == 1) return false;
  if (t.group_depth != 0) --t.group_depth;
  return true;
}
// The outermost End (or ncclGroupSimulateEnd) has returned: the group's calls now count, or have
// failed.
void group_ended(Thread& t, std::uint64_t start_ns, std::uint64_t dur_ns, ncclResult_t result,
                 bool simulated);

}  // namespace tprof
