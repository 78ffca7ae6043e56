// Names of processes and numbers for people, and what a finding keeps of a process when the traces
// are gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "read/process.h"
#include "text/text.h"

namespace tprof::check {

using Processes = std::vector<const read::Process*>;

// Returns the processes for which keep() is true, in order.
template <typename Keep>
Processes select(const Processes& processes, const Keep& keep) {
  Processes kept;
  for (const read::Process* p : processes) {
    if (keep(*p)) kept.push_back(p);
  }
  return kept;
}

text::Ranks ranks_of(const Processes& processes);  // without processes that have no rank

// Identifies one process to people.
struct ProcessId {
  std::optional<std::int64_t> rank{};
  std::int64_t pid = 0;
  std::string host{};
  std::optional<std::int64_t> device{};  // if the process holds several ranks
  bool child = false;                    // forked by that rank

  ProcessId(const read::Process& process);  // NOLINT(google-explicit-constructor)
  bool operator==(const ProcessId&) const = default;
};

// Whom a finding is about, in bounded memory.
struct Who {
  std::uint64_t count = 0;
  bool running = false;           // the first of them still runs
  text::Ranks ranks{};            // without children of ranks
  std::uint64_t no_ranks = 0;     // how many have no rank
  std::vector<ProcessId> some{};  // the only one; else the first ones without a rank

  Who(const Processes& processes);  // NOLINT(google-explicit-constructor)
  bool operator==(const Who&) const = default;
};

// "rank 3", "rank 2 (device 2 of pid 17)", "pid 17 on node7"
std::string name_of(const ProcessId& process);
// "rank 3" without further detail; name_of() if it has no rank.
std::string name_of_rank(const ProcessId& process);
// "ranks 0-3,7", then the processes without a rank.
std::string names_of(const Who& who);
using text::names_of;

const char* is_or_was(const Who& who);  // or "are", "were"

// "1 rank", "1,234 ranks", "2 processes"
std::string counted(std::uint64_t n, const std::string& what);

// "588 to 589 collectives" if the two differ; else as counted().
std::string counted_to(std::uint64_t fewest, std::uint64_t most, const std::string& what);

// "0 B", ">= 4.00 KiB": for calls of [2^class, 2^(class+1)) bytes.
std::string size_class(std::int64_t bytes_class);

std::string nccl_error(std::uint64_t result);  // "ncclSystemError (2)"

std::string duration(std::int64_t ns);  // "6.000 s"; values below 0 count as 0

using text::utc;

}  // namespace tprof::check
