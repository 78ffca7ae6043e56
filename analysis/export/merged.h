// A merged trace: what goes into it, and where. It is one array in Chrome's format, part after
// part.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/other_trace.h"
#include "export/output.h"
#include "export/placement.h"
#include "export/timeline.h"

namespace tprof::trace_export {

// Decides where each process goes: its rank is its pid. Further processes of a rank, and those
// without one, get pids after the last rank. Lines of other calls than `asked`, their device times,
// and what is of other steps are left out.
Members placements(const filter::Selection& asked, const job::Job& job, const TimeAxis& axis,
                   const std::vector<const read::Process*>& chosen,
                   const std::vector<OtherFile>& others);

// Bytes of a merged trace of these processes before compression: by the sizes of their files, and
// of each rank's the share that its chosen calls are of all that have a line.
std::uint64_t estimated_bytes(const read::Traces& traces,
                              const std::vector<const read::Process*>& chosen,
                              const filter::Selection& asked);

struct Part {
  const read::Trace* trace = nullptr;
  std::vector<Member> members;  // in the order of the trace's processes
  bool of_node = false;         // lanes of a node: its member is no process of the job's
};

// All that a merged trace is written of.
struct Merged {
  std::vector<Part> parts{};
  const std::vector<OtherFile>& others;
  const Members& members;
  nlohmann::ordered_json clocks{};  // how those of hosts were corrected, as the contract says
  std::string only{};               // which calls are in it; empty: all
};

// The files of the ranks. The lanes of each node are behind the lowest rank of its host, since a
// reader takes lines for those of the process whose header comes before them.
std::vector<Part> parts_of(const read::Traces& traces, const std::vector<read::Trace>& nodes,
                           const Members& members);

// Memory does not grow with the input, but for what the timeline holds. `progress` gets the bytes
// of input done so far. Throws BadInput for a line that can't be read.
void write_merged(const Merged& merged, const Timeline& timeline, bool gzip, Output& output,
                  const std::function<void(std::uint64_t)>& progress);

}  // namespace tprof::trace_export
