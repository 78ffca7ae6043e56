// Gives a rank file the end that its process could not write, from the ring file it left behind.
#pragma once

#include <filesystem>
#include <string>

namespace tprof::recover {

struct Result {
  bool closed;  // it is now, or was before; else it was left alone, or as far as there was room
  std::string text;  // one line, without the file's name
};

// The rank file is cut at what was committed, and what the ring file holds is written behind it;
// then the ring file goes. The ring file is not changed before that, so it may be tried again
// wherever this was interrupted, and ends the same. `force`: take a process of another host for
// dead. Throws BadInput for what can't be read or written, and for a ring file of another version.
Result recover(const std::filesystem::path& rank_file, bool force);

}  // namespace tprof::recover
