#include "export/nesting.h"

#include <algorithm>
#include <tuple>

namespace tprof::trace_export {

bool Nesting::before(const Slice& a, const Slice& b) {
  return std::tie(a.lane, a.begin_ns, b.dur_ns) < std::tie(b.lane, b.begin_ns, a.dur_ns);
}

// Where two overlap, the one that loses less ends where the other one does or begins. None loses
// all of its time.
void Nesting::finish() {
  if (!std::ranges::is_sorted(slices_, before)) std::ranges::sort(slices_, before);
  std::vector<Slice*> open;  // each within the one before
  for (Slice& s : slices_) {
    while (!open.empty() && (open.back()->lane != s.lane || open.back()->end_ns() <= s.begin_ns)) {
      open.pop_back();
    }
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
  std::erase_if(slices_, [](const Slice& s) { return s.cut_ns == 0; });
  slices_.shrink_to_fit();
}

std::int64_t Nesting::cut_ns(std::int64_t lane, std::int64_t begin_ns, std::int64_t dur_ns) const {
  const Slice wanted{lane, begin_ns, dur_ns, 0};
  const auto at = std::ranges::lower_bound(slices_, wanted, before);
  return at == slices_.end() || before(wanted, *at) ? 0 : at->cut_ns;
}

}  // namespace tprof::trace_export
