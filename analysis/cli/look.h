// Takes one look at a job that may still run, in a folder that may still be empty.
#pragma once

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/input.h"

namespace tprof::cli {

struct Look {
  read::Traces traces;
  std::optional<job::Job> job;  // the job of these traces
  std::string why;              // why there is none yet

  bool over() const;  // true if nothing more is to come of it
};

// Throws BadInput if that is no folder.
Look look_at(const std::filesystem::path& folder, const Choice& choice, read::Wanted wanted);

// Converts the seconds of an option.
inline std::chrono::nanoseconds seconds(double s) {
  return std::chrono::nanoseconds(std::llround(s * 1e9));
}

}  // namespace tprof::cli
