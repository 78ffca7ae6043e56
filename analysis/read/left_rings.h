// Ring files that lie around on this machine.
#pragma once

#include <filesystem>
#include <vector>

namespace tprof::read {

// Rank files in `folder` of dead processes of this machine that still have their ring files. Looks
// at ring files only, so that it takes no longer for the thousands of rank files of other machines.
std::vector<std::filesystem::path> left_by_the_dead(const std::filesystem::path& folder);

}  // namespace tprof::read
