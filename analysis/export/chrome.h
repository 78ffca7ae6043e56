// Writes a merged trace: one array in Chrome's format, part after part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "export/other_clock.h"
#include "export/other_trace.h"
#include "export/output.h"
#include "export/placement.h"
#include "read/error.h"
#include "read/load.h"

namespace tprof::trace_export {

class Timeline;

struct Part {
  const read::Trace* trace = nullptr;
  std::vector<Member> members;  // in the order of the trace's processes
  bool of_node = false;         // lanes of a node: its member is no process of the job's
};

// How the clock of a host was corrected, as the first line of a merged trace says. See the
// contract.
struct HostClock {
  std::string host;
  std::vector<std::int64_t> ranks{};  // ascending
  std::size_t group = 0;              // hosts of one group are aligned with each other
  std::int64_t ahead_ns = 0;          // how far it was ahead of its reference host
  std::int64_t drift_ppb = 0;
  std::size_t pieces = 1;  // number of straight pieces of its course
  std::int64_t likely_ns = 0;
  std::optional<std::int64_t> at_most_ns{};
};

// A trace of another tool (other_trace.h), where it goes, and by which clock.
struct Beside {
  std::filesystem::path file;
  std::shared_ptr<OtherTrace> trace;
  Placement to;
  OtherClock clock;
};

// A part that can't be read, and why.
struct BadPart {
  const Part* part;
  read::BadInput error;
};

// All that a merged trace is written of.
struct Merged {
  std::vector<Part> parts;
  std::vector<Beside> beside{};
  std::vector<HostClock> clocks{};
  std::string only{};  // which calls are in it; empty: all
};

// Memory does not grow with the input, but for what the timeline holds. `progress` gets the bytes
// of input done so far. If the result is not empty, the output is useless, and the caller knows
// which parts to leave out of another.
std::vector<BadPart> write_chrome(const Merged& merged, const Timeline& timeline, bool gzip,
                                  Output& output,
                                  const std::function<void(std::uint64_t)>& progress);

}  // namespace tprof::trace_export
