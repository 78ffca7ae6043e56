// Tells where devices stand behind hosts that ran ahead of them.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/waits.h"

namespace tprof::diagnose {

// Returns how many collectives of the communicator the member's device has ended; nullopt: not
// known, as calls have no times, or those of the last of them may come yet.
std::optional<std::uint64_t> ended_by(const Member& member, const Case& c);

// Returns the first collective of the communicator that no device is through with. nullopt: not
// known, as calls have no times, or times of the last of them may come yet.
std::optional<std::uint64_t> devices_at(const Communicator& communicator, const Case& c);

// True if the last thing that is known of its host is a copy from the device, for which hosts wait.
bool reads_from_device(const read::Process& p, const Case& c);

// Returns that of these running processes which made no call for longest; null: none runs.
const read::Process* longest_quiet(const Members& members, const Case& c);

}  // namespace tprof::diagnose
