// The lines in which a rank's own writer says what a step was (tprof_step).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "read/process.h"

namespace tprof::read {

struct StepLine {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t launches = 0;  // of graphs, whose calls are in no row
  bool lost = false;           // calls may be missing
  bool found = false;          // by the writer itself: nothing marked it
  Rows rows{};
};

// Throws Malformed.
StepLine parse_step_line(std::string_view line);

}  // namespace tprof::read
