// Messages of which the two ends are known.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "diagnose/agreement.h"
#include "diagnose/finding.h"

namespace tprof::diagnose {

// Returns how many sends and receives all members made, by their ledgers.
std::pair<std::uint64_t, std::uint64_t> sends_and_receives(const Communicator& communicator);

// Returns the ids of the communicators on which messages were found that do not fit.
std::set<std::string> unfit_messages(const Findings& found);

}  // namespace tprof::diagnose
