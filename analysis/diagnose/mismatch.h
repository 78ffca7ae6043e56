// Findings that ranks of a communicator did different things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

inline constexpr Kind kMismatchKind{"mismatch", Severity::error};

// Whether the ranks of a communicator are among those found to differ.
bool differ(const Findings& found, const Communicator& communicator);

// `text`: what comes behind the name of the communicator.
Finding& add_mismatch(Findings& found, const Communicator& communicator, const Parting& parting,
                      const std::string& text, std::vector<std::string> evidence);

// The first collective that two ranks did not do alike, from their lines.
struct FirstDifference {
  std::optional<std::uint64_t> seq;  // nothing: lines do not tell
  std::string function{};
  std::vector<std::string> evidence{};
  std::string unknown{};  // why nothing was found, or why an earlier one may be; empty: certain
};

// Between the first group that parts and the others, in collectives [parting.same, end).
FirstDifference first_difference(const Parting& parting, std::uint64_t end, const Case& c);

}  // namespace tprof::diagnose
