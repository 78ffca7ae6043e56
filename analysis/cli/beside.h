// Traces of other tools that `tprof merge --with` puts beside those of the ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "export/other_clock.h"
#include "export/other_trace.h"
#include "read/folder.h"
#include "read/process.h"

namespace tprof::cli {

struct OtherFile {
  std::filesystem::path file;
  const read::Process* process;  // of whose rank it is
  std::int64_t begin_ns;         // on that process's axis: ts of its first event
  trace_export::OtherClock clock{};
};

// `with`: files, folders and patterns, each maybe with RANK= before it. A file's rank is that one,
// or what it says itself, or the number behind "rank" in its name, or that of the only process.
// Throws BadInput where none of these tells, or where there is no such file. What is of a rank that
// is not among `chosen` is left out. Where one marks collectives, the lines of its rank are read:
// its clock is then refined by those that both saw, as far as they prove it.
std::vector<OtherFile> other_files(const std::vector<std::string>& with,
                                   const std::vector<const read::Process*>& chosen,
                                   const read::Traces& traces);

// For people: by which clocks they are on the axis.
std::vector<std::string> notes(const std::vector<OtherFile>& others);

}  // namespace tprof::cli
