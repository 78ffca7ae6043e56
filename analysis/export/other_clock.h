// The clock by which another tool's trace was put on the axis.
#pragma once

#include <optional>
#include <string>

#include "align/enclosed.h"

namespace tprof::trace_export {

struct OtherClock {
  std::optional<align::Shift> shift{};  // nullopt: the host's wall clock, as the tool took it
  std::string why{};                    // why there is no shift

  // Returns this as a sentence, for the trace and for people.
  std::string sentence() const;
};

}  // namespace tprof::trace_export
