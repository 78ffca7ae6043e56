// Traces of other tools that `tprof merge --with` puts beside those of the ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "export/other_trace.h"
#include "run/lines.h"

namespace tprof::trace_export {

struct OtherFile {
  std::filesystem::path file;
  std::shared_ptr<OtherTrace> trace;
  const read::Process* process;  // the process of its rank
  // By what its clock was refined: collectives that both it and we saw; nullopt: the host's wall
  // clock, as the tool took it, and why.
  std::optional<align::Shift> shift{};
  std::string why{};

  std::int64_t shift_ns() const { return shift ? shift->ns : 0; }
  // ts of its first event, on that process's axis
  std::int64_t begin_ns() const {
    return trace->begin_ns() - process->header.base_time_ns + shift_ns();
  }
  // By which clock it is on the axis, as a sentence for the trace and for people.
  std::string clock() const;
};

// `with` has files, folders and patterns, each maybe with RANK= before it. That is a file's rank,
// else the one that it names itself, else the number after "rank" in its name, else that of the
// only process. Leaves out files that can't be read, for which none of these tells, that are of
// ranks which are not among `chosen`, or of another time than their rank, and says so in `skipped`.
// Throws BadInput if none is left, or if there is no such file.
std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const run::Lines& lines, std::vector<read::Skipped>& skipped);

// Finds the shift of each that marks collectives, as far as they prove it.
void refine_clocks(std::vector<OtherFile>& others, const run::Lines& lines);

// Returns notes for people on the clocks by which the files are on the axis, on how many of our
// collectives they have, and on what was left out of them.
std::vector<std::string> notes(const std::vector<OtherFile>& others);

}  // namespace tprof::trace_export
