// Gives a rank file the end that its process could not write, from the ring file it left behind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tprof::recover {

struct Result {
  bool closed;       // it is now, or was before; else it was left alone, or recovered in part
  std::string text;  // one line, without the file's name
};

// `file` is a rank file, or the ring file of a process that could not make one: then it is made.
//
// Cuts the rank file at what was committed, appends what the ring file holds, and then removes the
// ring file. The ring file is not changed before that. So an interrupted recovery may be tried
// again, and ends the same. `force`: take a process of another host for dead. Throws BadInput for
// what can't be read or written, and for a ring file of another version.
Result recover(const std::filesystem::path& file, bool force);

// Frees the ring files of dead processes whose folder was removed, in the places where processes
// that write to `folder` keep theirs. Returns a line for each such folder: what is freed is gone.
std::vector<std::string> free_removed(const std::filesystem::path& folder);

}  // namespace tprof::recover
