#include "read/ring_file.h"

#include <fstream>
#include <sstream>
#include <string>

namespace tprof::read {

namespace {

constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING of Linux

std::optional<ProcStat> stat_of(const std::filesystem::path& folder) {
  std::ostringstream text;
  text << std::ifstream(folder / "stat").rdbuf();  // sets a flag where the process ends meanwhile
  const std::string stat = text.str();
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcStat found;
  fields >> found.state >> found.parent;
  std::string skipped;
  for (int field = 5; field < 9; ++field) fields >> skipped;
  fields >> found.flags;
  for (int field = 10; field < 22; ++field) fields >> skipped;
  if (!(fields >> found.start_ticks)) return std::nullopt;
  return found;
}

bool has_ended(const ProcStat& thread) {
  return thread.state == 'Z' || thread.state == 'X' || (thread.flags & kExiting) != 0;
}

}  // namespace

std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc) {
  return stat_of(proc / std::to_string(pid));
}

bool exits(std::int64_t pid, std::uint64_t start_ticks, const std::filesystem::path& proc) {
  const auto main_thread = proc_stat(pid, proc);
  if (!main_thread || main_thread->start_ticks != start_ticks) return false;
  if (!has_ended(*main_thread)) return false;
  std::error_code gone;  // as it is when somebody has waited for it
  std::filesystem::directory_iterator thread(proc / std::to_string(pid) / "task", gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    const auto stat = stat_of(thread->path());
    if (stat && !has_ended(*stat)) return false;
  }
  return true;
}

}  // namespace tprof::read
