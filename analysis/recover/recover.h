// Completes a rank file whose process died, from the ring file that it left.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tprof::recover {

struct Result {
  bool closed;       // it is closed now; else it was left alone or recovered in part
  std::string text;  // one line, without the file's name
};

// `file`: a rank file, or the ring file of a process that could not create one: then this creates
// it.
//
// Truncates the rank file to its committed part, appends the contents of the ring file, and then
// removes the ring file. Since that stays unchanged until then, an interrupted recovery can be
// repeated with the same result. `force`: treat processes of other hosts as dead. Throws BadInput
// on I/O errors and for a ring file of another version.
Result recover(const std::filesystem::path& file, bool force);

// Removes the ring files of dead processes whose rank files have been gone for a day, in the places
// that processes writing to `folder` use. Returns a line for each of their folders, as the counts
// are lost.
std::vector<std::string> free_useless(const std::filesystem::path& folder);

}  // namespace tprof::recover
