// Reads the metadata of one trace file: a merged trace, or a rank file with its ring file if it was
// not closed.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

struct Trace {
  Source source;                   // for reading its lines
  std::vector<Process> processes;  // in file order, one for each rank
  bool merged = false;
  bool metadata_read = false;  // all metadata lines were read, not only those at both ends
  std::size_t loaded_by = 0;   // the process of a team that loaded it
};

// Returns the ring file that the header of an unclosed process names.
std::filesystem::path ring_path(const std::filesystem::path& rank_file, const Header& header);

// Whether to read a merged trace, which is as large as all rank files together. Its first lines
// tell.
enum class Merged { read, leave };

// The part to read of a running process: everything, or only the counts and open calls. The latter
// skips lines that it has not written yet, so that polling is cheap. `dumps`: everything, and
// accept dumps of PyTorch's Flight Recorder too.
enum class Wanted { lines, counts, dumps };

// Throws BadInput. If possible, reads only the beginning and the end of a rank file, or what its
// process left in place of an end. With Merged::leave a merged trace has no processes.
Trace load(const std::filesystem::path& file, Merged merged = Merged::read,
           Wanted wanted = Wanted::lines);

// The kind of a file, judged by its first lines.
struct Beginning {
  bool merged = false;             // a merged trace
  std::optional<Header> header{};  // set for a rank file
  std::string refused{};           // why this tool can't read the file's schema
};

// Returns an empty one for anything else. Never throws.
Beginning beginning_of(const std::filesystem::path& file);

// Returns the path of the snapshot beside a rank file whose ring file is elsewhere.
std::filesystem::path snapshot_path(const std::filesystem::path& rank_file);

}  // namespace tprof::read
