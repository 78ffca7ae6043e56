// Tells which collectives devices have ended: hosts run ahead of them.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Returns how many collectives of the communicator the member's device has ended; nullopt: not
// known, as calls have no times, or those of the last of them may come yet.
std::optional<std::uint64_t> ended_by(const Member& member, const Case& c);

// Returns the first collective of the communicator that no device is through with; nullopt: not
// known.
std::optional<std::uint64_t> devices_at(const Communicator& communicator, const Case& c);

}  // namespace tprof::diagnose
