// Finds the processes that a command is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/asked.h"
#include "job/choice.h"

namespace tprof::control {

// A process that is asked, and the outcome.
struct Target {
  std::string name;  // "rank 3"
  std::optional<std::int64_t> rank;
  std::string host;
  std::int64_t pid = 0;
  std::filesystem::path ring;  // empty: none is in sight
  std::unique_ptr<Asked> asked{};
  std::string trouble{};  // why it could not be asked
};

// `where` is a folder with rank files, or a pid. Throws BadInput if no process is to be asked
// there.
std::vector<Target> targets_of(const std::filesystem::path& where, const job::Choice& choice);

bool all_in_sight(const std::vector<Target>& targets);

}  // namespace tprof::control
