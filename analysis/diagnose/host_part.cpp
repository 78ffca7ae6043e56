// Adds up what the ranks of a host tell of a collective.
#include <algorithm>
#include <tuple>
#include <utility>

#include "diagnose/meetings.h"

namespace tprof::diagnose {

// The result is the same in whatever order parts are added, and however the ranks are spread. Ranks
// may not have called the same: then the first of these kinds counts.
void HostPart::add(const HostPart& more) {
  if (!more.seen) return;
  const auto kind = std::tuple(more.bucket, more.rooted, more.size_class);
  mixed = mixed || more.mixed || (seen && kind != std::tuple(bucket, rooted, size_class));
  if (!std::exchange(seen, true) || kind < std::tuple(bucket, rooted, size_class)) {
    std::tie(bucket, rooted, size_class) = kind;
  }
  if (more.came != 0) {
    const bool theirs = came == 0 || more.last_start > last_start ||
                        (more.last_start == last_start && more.last < last);
    const HostPart& first = theirs ? more : *this;
    const HostPart& second = theirs ? *this : more;
    std::int64_t before = first.before_last;
    if (second.came != 0) {
      before = first.came > 1 ? std::max(before, second.last_start) : second.last_start;
    }
    std::tie(before_last, last_start, last, last_read_ns) =
        std::tuple(before, first.last_start, first.last, first.last_read_ns);
    read = static_cast<std::uint16_t>(read + more.read);
    first_start = came == 0 ? more.first_start : std::min(first_start, more.first_start);
    came = static_cast<std::uint16_t>(came + more.came);
  }
  if (more.left != 0) {
    first_end = left == 0 ? more.first_end : std::min(first_end, more.first_end);
    left = static_cast<std::uint16_t>(left + more.left);
    sum_end += more.sum_end;
  }
}

}  // namespace tprof::diagnose
