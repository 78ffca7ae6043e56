// Steps of which it is not known when their calls of NCCL ran: with TPROF_TIMING=events:N, or where
// times were lost. The device would seem to stand idle then.
#include <algorithm>

#include "why/rank_lines.h"

namespace tprof::why {

// True for a call of NCCL that has something to do on the device.
bool RankLines::takes_time(const read::Event& e) const {
  if (e.launch || is_copy(e.bucket) || e.bytes == 0) return false;
  const read::Comm* comm = read::comm_of(rank_, e.comm);
  return comm == nullptr || comm->nranks != 1;
}

void RankLines::leave_out_untimed() {
  std::vector<std::uint64_t> timed(steps_.size());
  for (const Collective& c : collectives_) {
    if (c.step != SIZE_MAX) timed[c.step] += c.calls;
  }
  std::ranges::sort(called_);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto before = [&](std::int64_t at) {
      return std::ranges::lower_bound(called_, at) - called_.begin();
    };
    const auto called =
        static_cast<std::uint64_t>(before(steps_[i].to_ns) - before(steps_[i].from_ns));
    steps_[i].untimed = timed[i] * 20 < called * 19;
  }
}

}  // namespace tprof::why
