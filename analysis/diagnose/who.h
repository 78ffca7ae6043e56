// Processes, and what stays of them in a finding when their traces are gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "read/process.h"
#include "text/ranks.h"

namespace tprof::diagnose {

using Processes = std::vector<const read::Process*>;

// Returns the processes for which keep() is true, in their order.
template <typename Keep>
Processes select(const Processes& processes, const Keep& keep) {
  Processes kept;
  for (const read::Process* p : processes) {
    if (keep(*p)) kept.push_back(p);
  }
  return kept;
}

text::Ranks ranks_of(const Processes& processes);  // of those that have one

// Identifies one process to people.
struct ProcessId {
  std::optional<std::int64_t> rank{};
  std::int64_t pid = 0;
  std::string host{};
  std::optional<std::int64_t> device{};  // of a process that holds several ranks
  bool child = false;                    // forked by that rank, and no rank itself

  bool operator==(const ProcessId&) const = default;
};
ProcessId id_of(const read::Process& process);

// Who a finding is about. It does not grow with the number of ranks.
struct Who {
  std::uint64_t count = 0;
  bool running = false;           // the first of them
  text::Ranks ranks{};            // of those that are ranks themselves
  std::uint64_t no_ranks = 0;     // how many are none
  std::vector<ProcessId> some{};  // the only one; else the first of those that are no ranks

  bool operator==(const Who&) const = default;
};
Who who_of(const Processes& processes);

}  // namespace tprof::diagnose
