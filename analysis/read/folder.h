// Which files of a folder are traces, and loading them all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "read/load.h"

namespace tprof::read {

struct TraceFile {
  std::filesystem::path path;
  bool named = false;  // by the user, not found in a folder
};

// Of a folder its *.json and *.json.gz, in the order of their names.
std::vector<TraceFile> files_in(const std::filesystem::path& folder);

// Trace files named by PATHs: a file is itself, a folder its *.json and *.json.gz. Throws BadInput
// where there is none.
std::vector<TraceFile> trace_files(const std::vector<std::filesystem::path>& paths);

// A file of a folder that is left out, and why. `unreadable`: it may have been a rank file.
struct Skipped {
  std::string reason;
  bool unreadable = false;
};

struct Traces {
  std::vector<Trace> traces;  // in the order of the files
  std::vector<Skipped> skipped;
};

// A file that can't be read is left out. Throws BadInput for a named file that is not a trace, and
// where no file is one. `progress` gets
// the number of files done, from any thread.
Traces load_all(const std::vector<TraceFile>& files,
                const std::function<void(std::size_t)>& progress, Wanted wanted = Wanted::lines);

}  // namespace tprof::read
