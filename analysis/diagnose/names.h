// Names processes, times and sizes for people.
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/who.h"
#include "text/text.h"

namespace tprof::diagnose {

// "rank 3", "rank 2 (device 2 of pid 17)", "pid 17 on node7"
std::string name_of(const ProcessId& process);
std::string name_of(const read::Process& process);

// "rank 3", without any further detail; the same as name_of() if it has no rank.
std::string name_of_rank(const ProcessId& process);
std::string name_of_rank(const read::Process& process);

// "ranks 0-3,7", followed by the processes that have no rank.
std::string names_of(const Who& who);
std::string names_of(const Processes& processes);

using text::names_of;

const char* is_or_was(const Who& who);  // or "are", "were"

// "1 rank", "1,234 ranks", "2 processes"
std::string counted(std::uint64_t n, const std::string& what);

// "588 to 589 collectives", of ranks that differ; else as counted().
std::string counted_to(std::uint64_t fewest, std::uint64_t most, const std::string& what);

// "0 B", ">= 4.00 KiB": the calls of [2^class, 2^(class+1)) bytes.
std::string size_class(std::int64_t bytes_class);

std::string nccl_error(std::uint64_t result);  // "ncclSystemError (2)"

std::string duration(std::int64_t ns);  // "6.000 s"; values below 0 count as 0

using text::utc;

}  // namespace tprof::diagnose
