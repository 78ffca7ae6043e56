// Counts sends and receives of a communicator.
#pragma once

#include <cstdint>
#include <utility>

#include "diagnose/agreement.h"

namespace tprof::diagnose {

// Returns those of all its members, by their ledgers.
std::pair<std::uint64_t, std::uint64_t> sends_and_receives(const Communicator& communicator);

}  // namespace tprof::diagnose
