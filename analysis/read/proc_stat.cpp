#include "read/proc_stat.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tprof::read {

std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc) {
  std::ifstream file(proc / std::to_string(pid) / "stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcStat found;
  fields >> found.state >> found.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  if (!(fields >> found.start_ticks)) return std::nullopt;
  return found;
}

}  // namespace tprof::read
