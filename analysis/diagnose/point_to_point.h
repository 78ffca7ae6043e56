// Sends that nobody received, and receives that nobody sent to.
#pragma once

#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/line_facts.h"

namespace tprof::diagnose {

// Of ranks that closed: in a process that was killed, a call may simply be missing its other end.
// From lines, pair by pair; where they are not all there, from the sums of the ledgers.
void unmatched_point_to_point(const std::vector<Communicator>& communicators, const Facts& facts,
                              std::vector<Problem>& found);

// What `member` did with the rank `peer` of its communicator; null: no such line.
const Channel* channel_of(const Member& member, std::int64_t peer, bool send, const Facts& facts);

}  // namespace tprof::diagnose
