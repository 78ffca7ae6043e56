// The choice of what a command is asked about, in the same words for every command: --ranks,
// --steps, --ops, --sizes, --comm and --phase.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interpose/format/call_choice.h"
#include "tables/phase_names.h"
#include "tables/steps.h"

namespace tprof::filter {

// As they stand on the command line. Empty: all of them.
struct Words {
  std::string ranks{};
  std::string steps{};
  std::string ops{};
  std::string sizes{};
  std::string comms{};
  std::string phases{};

  bool of_calls() const;  // any but --ranks
  bool empty() const { return ranks.empty() && !of_calls(); }
  // "only ranks 0-3, steps 10-19"; empty: all.
  std::string sentence() const;
  // Each that is given, with its name: "ranks", "steps", ...
  std::vector<std::pair<const char*, std::string>> given() const;
};

struct Filter {
  Words words{};
  std::optional<tables::StepList> steps{};
  std::vector<std::string> ops{};    // names or patterns
  std::vector<Sizes> sizes{};        // any of them; none: all sizes
  std::vector<std::string> comms{};  // names, ids, beginnings of ids, numbers, or roles
  std::set<tables::StepPhase> phases{};
};

// Throws BadInput that says what was expected.
Filter parsed(const Words& words);

// True if a list such as "0-3,7" has this rank. Throws BadInput that says what was expected.
bool is_listed(std::string_view ranks, std::int64_t rank);

}  // namespace tprof::filter
