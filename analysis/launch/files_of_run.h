// The rank files of a command's processes, and the leftovers of killed ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "read/folder.h"

namespace tprof::launch {

// The rank files of this run in a folder that may also have many of other hosts and runs.
struct FilesOfRun {
  std::vector<read::TraceFile> ours;  // of this command's processes on this host
  bool others = false;                // other hosts have some too
  bool other_runs = false;
};

FilesOfRun files_of_run(const std::filesystem::path& folder, const std::string& run_id);

// Completes the rank files of this run in the folder. Also frees memory of the node that any run
// left more than a day ago.
void finish_the_dead(const std::filesystem::path& folder, const std::string& run_id);

// Removes the lanes of this host and run if the host has no ranks of that run, since lanes are
// shown with ranks.
void drop_lanes_of_no_rank(const std::filesystem::path& folder, const std::string& run_id);

}  // namespace tprof::launch
