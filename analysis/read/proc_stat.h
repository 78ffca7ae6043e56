// Reads what /proc tells of a process on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tprof::read {

struct ProcStat {
  char state = '?';  // of the main thread: R, S, D, T, t, Z, X: proc(5)
  std::int64_t parent = 0;
  std::uint64_t flags = 0;
  std::uint64_t start_ticks = 0;  // since boot
};

// nullopt: there is no such process, or it can't be read.
std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc = "/proc");

// True if the process that started then has ended, as far as its program goes: each of its threads
// is a zombie, or gives back what it has, such as memory, and after that files and their locks.
// False too if there is no such process.
bool exits(std::int64_t pid, std::uint64_t start_ticks,
           const std::filesystem::path& proc = "/proc");

}  // namespace tprof::read
