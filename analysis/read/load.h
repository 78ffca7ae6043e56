// Reading the metadata of one trace file: rank file, with its ring file where it did not close, or
// merged trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

// What is asked of a process that runs: all; or the counts with the calls that are open, and none
// of the lines that it has not written yet, so that looking again and again costs little.
enum class Wanted { lines, counts };

// Throws BadInput. Of a rank file only the beginning and the end are read, or what its process left
// beside it in place of an end; a merged trace that is left has no processes.
Trace load(const std::filesystem::path& file, Merged merged = Merged::read,
           Wanted wanted = Wanted::lines);

// Whether it begins as every trace does.
bool opens_array(std::string_view text);

// What a file is, by its first lines.
struct Beginning {
  bool merged = false;           // a merged trace
  std::optional<Header> header;  // of a rank file
};

// Neither: something else, or its first lines can't be read. Never throws.
Beginning beginning_of(const Block& first_lines);
Beginning beginning_of(const std::filesystem::path& file);

// The snapshot that a process keeps beside its rank file where its ring file lies elsewhere.
std::filesystem::path snapshot_path(const std::filesystem::path& rank_file);

struct SnapshotText {
  std::uint64_t cut = 0;  // bytes of the rank file that the lines follow
  std::string lines;
};

// The newest that is whole. Nothing where there is none of that process.
std::optional<SnapshotText> read_snapshot(const std::filesystem::path& rank_file,
                                          const Header& header);

}  // namespace tprof::read
