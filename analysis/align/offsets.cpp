#include "align/offsets.h"

#include <algorithm>
#include <limits>

namespace tprof::align {

std::int64_t common_base_ns(const std::vector<const read::Process*>& processes) {
  std::int64_t base = std::numeric_limits<std::int64_t>::max();
  for (const read::Process* p : processes) base = std::min(base, p->header.base_time_ns);
  return base;
}

std::int64_t shift_ns(const read::Process& process, std::int64_t base_ns) {
  return process.header.base_time_ns - base_ns;
}

}  // namespace tprof::align
