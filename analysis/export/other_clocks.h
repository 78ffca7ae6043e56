// The clocks of other tools' traces, refined by the collectives that both they and we saw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/enclosed.h"
#include "read/folder.h"
#include "read/process.h"

namespace tprof::trace_export {

// The clock by which another tool's trace was put on the axis.
struct OtherClock {
  std::optional<align::Shift> shift{};  // nullopt: the host's wall clock, as the tool took it
  std::string why{};                    // why there is no shift

  // Returns this as a sentence, for the trace and for people.
  std::string sentence() const;
};

// The collectives that a trace marks, by CLOCK_REALTIME.
struct Marked {
  const read::Process* process = nullptr;
  std::vector<align::Stay> collectives{};
};

// Returns the clock of each. Reads the lines of processes whose collectives are marked.
std::vector<OtherClock> other_clocks(const std::vector<Marked>& marked, const read::Traces& traces);

}  // namespace tprof::trace_export
