// The clocks of other tools' traces, refined by the collectives that both they and we saw.
#pragma once

#include <vector>

#include "align/enclosed.h"
#include "export/other_clock.h"
#include "read/folder.h"
#include "read/process.h"

namespace tprof::trace_export {

// The collectives that a trace marks, by CLOCK_REALTIME.
struct Marked {
  const read::Process* process = nullptr;
  std::vector<align::Stay> collectives{};
};

// Returns the clock of each. Reads the lines of processes whose collectives are marked.
std::vector<OtherClock> other_clocks(const std::vector<Marked>& marked, const read::Traces& traces);

}  // namespace tprof::trace_export
