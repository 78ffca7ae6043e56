// Traces of other tools that `tprof merge --with` puts beside those of the ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "export/other_clocks.h"
#include "export/other_trace.h"
#include "read/folder.h"
#include "read/process.h"

namespace tprof::trace_export {

struct OtherFile {
  std::filesystem::path file;
  std::shared_ptr<OtherTrace> trace;
  const read::Process* process;  // the process of its rank
  std::int64_t begin_ns;         // ts of its first event, on that process's axis
  OtherClock clock{};
};

// `with` has files, folders and patterns, each maybe with RANK= before it. That is a file's rank,
// else the one that it names itself, else the number after "rank" in its name, else that of the
// only process. Leaves out files that can't be read, for which none of these tells, that are of
// ranks which are not among `chosen`, or of another time than their rank, and says so in `skipped`.
// Throws BadInput if none is left, or if there is no such file. If a file marks collectives, the
// lines of its rank are read. Its clock is then refined by the collectives that both saw, as far as
// they prove it.
std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const read::Traces& traces, std::vector<read::Skipped>& skipped);

// Returns notes for people on the clocks by which the files are on the axis, on how many of our
// collectives they have, and on what was left out of them.
std::vector<std::string> notes(const std::vector<OtherFile>& others);

}  // namespace tprof::trace_export
