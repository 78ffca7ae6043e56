// The rank files that a command's processes wrote, and what those left that were killed.
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

// Completes the rank files of this run in the folder. Also gives back memory of the node that
// nobody has asked for in a day, whoever's it is.
void finish_the_dead(const std::filesystem::path& folder, const std::string& run_id);

// Removes the lanes of this host and run if it has no ranks of that run: lanes belong to ranks, and
// where there are none, nobody could place them.
void drop_lanes_of_no_rank(const std::filesystem::path& folder, const std::string& run_id);

}  // namespace tprof::launch
