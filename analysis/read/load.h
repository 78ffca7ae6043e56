// Reads the metadata of one trace file: a merged trace, or a rank file, with its ring file if it
// was not closed.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

struct Trace {
  Source source;                   // for reading its lines
  std::vector<Process> processes;  // in the order of the file, one for each rank
  bool merged = false;
  bool metadata_read = false;  // all lines of metadata were, and not only the first and the last
  std::size_t loaded_by = 0;   // the process of a team that has its file
};

// Returns the ring file of a process that has not closed, as its header says.
std::filesystem::path ring_path(const std::filesystem::path& rank_file, const Header& header);

// How to treat a merged trace. It is as large as all rank files together, and its first lines say
// that it is one.
enum class Merged { read, leave };

// The parts to read of a running process: everything, or only the counts and the open calls. The
// latter skips the lines that it has not written yet, so that looking again and again costs little.
// `dumps`: everything, and dumps of PyTorch's Flight Recorder too. Others refuse these.
enum class Wanted { lines, counts, dumps };

// Throws BadInput. If it can, reads only the beginning and the end of a rank file, or what its
// process left beside it in place of an end. With Merged::leave a merged trace has no processes.
Trace load(const std::filesystem::path& file, Merged merged = Merged::read,
           Wanted wanted = Wanted::lines);

// The kind of a file, judged by its first lines.
struct Beginning {
  bool merged = false;           // a merged trace
  std::optional<Header> header;  // set for a rank file
};

// Returns neither for anything else, and if the first lines can't be read. Never throws.
Beginning beginning_of(const std::filesystem::path& file);

// Returns the snapshot that a process keeps beside its rank file if its ring file is elsewhere.
std::filesystem::path snapshot_path(const std::filesystem::path& rank_file);

}  // namespace tprof::read
