// On which communicators findings say that ranks did different things.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "diagnose/agreement.h"
#include "diagnose/finding.h"

namespace tprof::diagnose {

// Returns the ids of the communicators on which a mismatch was found.
std::set<std::string> different(const Findings& found);
// Returns those on which messages were found that do not fit.
std::set<std::string> unfit_messages(const Findings& found);

// Returns how many sends and receives all members made, by their ledgers.
std::pair<std::uint64_t, std::uint64_t> sends_and_receives(const Communicator& communicator);

}  // namespace tprof::diagnose
