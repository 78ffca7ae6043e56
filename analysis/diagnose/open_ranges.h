// Where in the program a rank stands, by the NVTX ranges that it has pushed and not popped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/line_facts.h"

namespace tprof::diagnose {

// A process, and the thread of it that matters most where one is known.
using Standing = std::pair<const read::Process*, std::optional<std::int64_t>>;

// `rank 2 was within NVTX ranges "step 12" / "attention" (innermost last), …`: a line for each
// thread of these processes that is within any; of a few of them.
std::vector<std::string> open_ranges(const std::vector<Standing>& processes, const Facts& facts);

}  // namespace tprof::diagnose
