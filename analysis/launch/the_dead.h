// Completes what processes of a command left when they were killed.
#pragma once

#include <filesystem>
#include <string>

namespace tprof::launch {

// Completes the rank files of this run in the folder. Also gives back memory of the node that
// nobody has asked for in a day, whoever's it is.
void finish_the_dead(const std::filesystem::path& folder, const std::string& run_id);

}  // namespace tprof::launch
