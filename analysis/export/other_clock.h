// By which clock another tool's trace is on the axis.
#pragma once

#include <optional>
#include <string>

#include "align/enclosed.h"

namespace tprof::trace_export {

struct OtherClock {
  std::optional<align::Shift> shift{};  // nothing: the host's wall clock, as the tool took it
  std::string why{};                    // then: why there is none

  // As the trace and people are told it.
  std::string sentence() const;
};

}  // namespace tprof::trace_export
