#include "export/nesting.h"

#include <algorithm>
#include <tuple>

namespace tprof::trace_export {

// As viewers sort them: of two that begin together the longer one comes first.
bool Nesting::before(const Slice& a, const Slice& b) {
  return std::tie(a.begin_ns, b.dur_ns) < std::tie(b.begin_ns, a.dur_ns);
}

// Where two overlap, the one that loses less ends where the other one does or begins. None loses
// all of its time.
void Nesting::cut(Lane& lane) {
  if (!std::ranges::is_sorted(lane, before)) std::ranges::sort(lane, before);
  std::vector<Slice*> open;  // each within the one before
  for (Slice& s : lane) {
    while (!open.empty() && open.back()->end_ns() <= s.begin_ns) open.pop_back();
    while (!open.empty() && open.back()->end_ns() < s.end_ns()) {
      Slice& around = *open.back();
      const std::int64_t behind = s.end_ns() - around.end_ns();
      const std::int64_t shared = around.end_ns() - s.begin_ns;
      if (around.begin_ns == s.begin_ns || behind < shared) {
        s.cut_ns += behind;
        break;
      }
      around.cut_ns += shared;
      open.pop_back();
    }
    open.push_back(&s);
  }
  std::erase_if(lane, [](const Slice& s) { return s.cut_ns == 0; });
  lane.shrink_to_fit();
}

void Nesting::finish() {
  for (auto& [number, lane] : lanes_) cut(lane);
  std::erase_if(lanes_, [](const auto& lane) { return lane.second.empty(); });
  last_ = nullptr;
}

std::int64_t Nesting::cut_ns(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) const {
  const auto of = lanes_.find(lane);
  if (of == lanes_.end()) return 0;
  const Slice wanted{begin_ns, dur_ns, 0};
  const auto at = std::ranges::lower_bound(of->second, wanted, before);
  return at == of->second.end() || before(wanted, *at) ? 0 : at->cut_ns;
}

}  // namespace tprof::trace_export
