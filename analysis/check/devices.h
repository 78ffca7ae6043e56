// Tells which collectives devices have ended: hosts run ahead of them.
#pragma once

#include <cstdint>
#include <optional>

#include "check/finding.h"

namespace tprof::check {

struct Case;
struct Communicator;
struct Member;
struct Operation;

// Returns how many collectives of the communicator the member's device has ended; nullopt: not
// known, as calls have no times, or those of the last of them may come yet.
std::optional<std::uint64_t> ended_by(const Member& member, const Case& c);

// A device ended a collective that other ranks had not called: dumps of a job that ran, which were
// not written in the same moment.
struct Contradiction {
  const Member* ended = nullptr;
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;
  Processes others{};
};
std::optional<Contradiction> dumped_while_running(const Case& c);

}  // namespace tprof::check
