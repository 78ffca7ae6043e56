// Ring files that lie around on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tprof::read {

// The ring file of a process of this user and this machine, since its last start, that is dead.
struct LeftRing {
  std::filesystem::path ring;
  std::filesystem::path folder;     // as the process saw it: another container's may not be there
  std::filesystem::path rank_file;  // in it
  std::uint64_t silent_ns;          // since the process was last awake

  bool has_rank_file() const;
};

// Of processes that wrote to `folder`, and of those that kept their ring file where these may.
// Looks at ring files only, so that it takes no longer for the thousands of rank files of other
// machines.
std::vector<LeftRing> left_rings(const std::filesystem::path& folder);

}  // namespace tprof::read
