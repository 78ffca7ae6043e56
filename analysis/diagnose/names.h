// How findings name processes, times and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "read/process.h"
#include "text/text.h"

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

// "rank 3", "rank 2 (device 2 of pid 17)", "pid 17 on node7"
std::string name_of(const read::Process& process);

// "rank 3", without any further detail; the same as name_of() if it has no rank.
std::string name_of_rank(const read::Process& process);

// Returns the ranks of those that have one, sorted and each once.
std::vector<std::int64_t> ranks_of(const Processes& processes);

// "ranks 0-3,7", followed by the processes that have no rank.
std::string names_of(const Processes& processes);

std::string names_of(const std::vector<std::int64_t>& ranks);  // sorted, each once; none: ""

const char* is_or_was(const Processes& who);  // or "are", "were"

// "1 rank", "1,234 ranks", "2 processes"
std::string counted(std::uint64_t n, const std::string& what);

// "0 B", ">= 4.00 KiB": the calls of [2^class, 2^(class+1)) bytes.
std::string size_class(std::int64_t bytes_class);

// Keeps the first few entries of a list for people, and replaces the rest by "and 3 more".
void shorten(std::vector<std::string>& list, std::size_t most);

std::string duration(std::int64_t ns);  // "6.000 s"; values below 0 count as 0

using text::utc;

}  // namespace tprof::diagnose
