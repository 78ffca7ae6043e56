// Tells which collectives the devices have ended, as hosts run ahead of them.
#pragma once

#include <cstdint>
#include <optional>

#include "check/finding.h"

namespace tprof::check {

struct Case;
struct Communicator;
struct Member;
struct Operation;

// Returns how many collectives of the communicator the member's device has ended; nullopt: unknown,
// as calls have no times or the latest times may still be missing.
std::optional<std::uint64_t> ended_by(const Member& member, const Case& c);

// A device ended a collective that other ranks had not called: the dumps were written at different
// moments while the job ran.
struct Contradiction {
  const Member* ended = nullptr;
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;
  Processes others{};
};
std::optional<Contradiction> dumped_while_running(const Case& c);

}  // namespace tprof::check
