// Takes one look at a job that may still run, in a folder that may still be empty.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "job/choice.h"
#include "read/load.h"

namespace tprof::live {

struct Look {
  read::Traces traces;
  std::optional<job::Job> job;  // the job of these traces
  std::string why;              // why there is none yet

  bool over() const;  // true if nothing more is to come of it
};

// Throws BadInput if that is no folder.
Look look_at(const std::filesystem::path& folder, const job::Choice& choice, read::Wanted wanted);

}  // namespace tprof::live
