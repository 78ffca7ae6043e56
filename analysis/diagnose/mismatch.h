// Findings that ranks of a communicator did different things.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Returns the ids of the communicators on which a mismatch was found.
std::set<std::string> different(const Findings& found);

// The first collective that two ranks issued differently, from their lines.
struct FirstDifference {
  std::optional<std::uint64_t> seq;  // nullopt: the lines do not tell
  std::string function{};
  std::optional<TimeRange> time{};  // when the two called it
  Facts evidence{};
  Facts unknown{};  // why none was found, or why there may be an earlier one; empty: certain
};

// Tells what the two called as this collective.
FirstDifference difference_at(const Member& mine, const Member& theirs, std::uint64_t seq,
                              const Case& c);

// Compares the first group of the parting with the others, in collectives [parting.same, end).
FirstDifference first_difference(const Parting& parting, std::uint64_t end, const Case& c);

}  // namespace tprof::diagnose
