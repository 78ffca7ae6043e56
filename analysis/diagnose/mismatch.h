// Findings that ranks of a communicator did different things.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Returns the ids of the communicators on which a mismatch was found.
std::set<std::string> different(const Findings& found);

// `what` follows the name of the communicator.
Finding& add_mismatch(Findings& found, const Communicator& communicator, const Parting& parting,
                      Fact what, Facts evidence);

// The first collective that two ranks issued differently, from their lines.
struct FirstDifference {
  std::optional<std::uint64_t> seq;  // nullopt: the lines do not tell
  std::string function{};
  std::optional<TimeRange> time{};  // when the two called it
  Facts evidence{};
  Facts unknown{};  // why none was found, or why there may be an earlier one; empty: certain
};

// Compares the first group of the parting with the others, in collectives [parting.same, end).
FirstDifference first_difference(const Parting& parting, std::uint64_t end, const Case& c);

}  // namespace tprof::diagnose
