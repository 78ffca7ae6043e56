// Writes a merged trace: one array in Chrome's format, part after part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/other_files.h"
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

// Another tool's trace, and where it goes.
struct Beside {
  const OtherFile* file;
  Placement to;
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
  nlohmann::ordered_json clocks{};  // how those of hosts were corrected, as the contract says
  std::string only{};               // which calls are in it; empty: all
};

// Memory does not grow with the input, but for what the timeline holds. `progress` gets the bytes
// of input done so far. If the result is not empty, the output is useless, and the caller knows
// which parts to leave out of another.
std::vector<BadPart> write_chrome(const Merged& merged, const Timeline& timeline, bool gzip,
                                  Output& output,
                                  const std::function<void(std::uint64_t)>& progress);

}  // namespace tprof::trace_export
