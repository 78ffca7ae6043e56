// Reading the metadata of one trace file: rank file, with its ring file where it did not close, or
// merged trace.
#pragma once

#include <filesystem>
#include <vector>

#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

struct Trace {
  Source source;                   // for reading its lines
  std::vector<Process> processes;  // in the order of the file, one for each rank
  bool merged = false;
};

// Where a process that has not closed keeps its ring file, as its header says.
std::filesystem::path ring_path(const std::filesystem::path& rank_file, const Header& header);

// What to do with a merged trace: it is as large as all rank files together, and its first lines
// say that it is one.
enum class Merged { read, leave };

// Throws BadInput. Of a rank file only the beginning and the end are read, or what its process left
// beside it in place of an end; a merged trace that is left has no processes.
Trace load(const std::filesystem::path& file, Merged merged = Merged::read);

}  // namespace tprof::read
