// Reads what /proc tells of a process on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tprof::read {

struct ProcStat {
  char state = '?';  // R, S, D, T, t, Z, X: proc(5)
  std::int64_t parent = 0;
  std::uint64_t start_ticks = 0;  // since boot
};

// nullopt: there is no such process, or it can't be read.
std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc = "/proc");

}  // namespace tprof::read
