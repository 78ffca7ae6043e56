// Finds the rank files that a command's processes wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "read/folder.h"

namespace tprof::launch {

// Rank files of this run, in a folder that may hold any number of other hosts' and other runs'.
struct FilesOfRun {
  std::vector<read::TraceFile> ours;  // of processes that this command started, on this host
  bool others = false;                // there are some of other hosts
  bool other_runs = false;
};

FilesOfRun files_of_run(const std::filesystem::path& folder, const std::string& run_id);

}  // namespace tprof::launch
