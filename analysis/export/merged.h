// The contents of a merged trace, and their places. It is one array in Chrome's format, part after
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

// Decides where each process goes: its rank becomes its pid. Further processes of a rank, and
// processes without one, get pids after the last rank. Calls that are not in `asked`, with their
// device times, and other steps are left out.
Members placements(const filter::Selection& asked, const job::Job& job, const TimeAxis& axis,
                   const std::vector<const read::Process*>& chosen,
                   const std::vector<OtherFile>& others);

// Estimates the bytes of a merged trace before compression, from the sizes of the files and the
// share of chosen calls among those with lines.
std::uint64_t estimated_bytes(const read::Traces& traces,
                              const std::vector<const read::Process*>& chosen,
                              const filter::Selection& asked);

struct Part {
  const read::Trace* trace = nullptr;
  std::vector<Member> members;  // in the order of the trace's processes
  bool of_node = false;         // lanes of a node: its member is no process of the job
};

// Everything that a merged trace is made from.
struct Merged {
  std::vector<Part> parts{};
  const std::vector<OtherFile>& others;
  const Members& members;
  nlohmann::ordered_json clocks{};  // how hosts' clocks were corrected (see the contract)
  std::string only{};               // the filters; empty: none
};

// Returns the files of the ranks. A node's lanes follow the lowest rank of its host, since readers
// assign lines to the process of the preceding header.
std::vector<Part> parts_of(const read::Traces& traces, const std::vector<read::Trace>& nodes,
                           const Members& members);

// Uses bounded memory, apart from the timeline. `progress` gets the bytes of input done so far.
// Throws BadInput for an unreadable line.
void write_merged(const Merged& merged, const Timeline& timeline, bool gzip, Output& output,
                  const std::function<void(std::uint64_t)>& progress);

}  // namespace tprof::trace_export
