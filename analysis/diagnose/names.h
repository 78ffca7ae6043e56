// How findings name processes, times and sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "read/process.h"

namespace tprof::diagnose {

std::string name_of(
    const read::Process& process);  // "rank 3", "rank 2 (device 2 of pid 17)", "pid 17 on node7"

// Of those that have one; sorted, each once.
std::vector<std::int64_t> ranks_of(const std::vector<const read::Process*>& processes);

// "ranks 0-3,7", with the processes that have no rank named behind.
std::string names_of(const std::vector<const read::Process*>& processes);

std::string names_of(const std::vector<std::int64_t>& ranks);  // sorted, each once; none: ""

std::string utc(std::int64_t realtime_ns);  // "2026-01-01 12:00:00.123 UTC"

// "[256.00 KiB, 512.00 KiB)": the calls of one bytes_class.
std::string size_range(std::int64_t bytes_class);

}  // namespace tprof::diagnose
