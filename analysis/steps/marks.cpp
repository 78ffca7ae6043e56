#include "steps/marks.h"

#include <algorithm>

#include "interpose/format/step_mark.h"

namespace tprof::steps {
namespace {

// Returns the marks that are in no other, since a step is not part of a step.
std::vector<Mark> apart(std::vector<Mark> marks) {
  std::ranges::sort(marks, {}, &Mark::from_ns);
  std::vector<Mark> all;
  for (const Mark& m : marks) {
    if (all.empty() || m.from_ns >= all.back().to_ns) all.push_back(m);
  }
  return all;
}

std::int64_t reach(const std::vector<Mark>& marks) {
  std::int64_t sum = 0;
  for (const Mark& m : marks) sum += m.to_ns - m.from_ns;
  return sum;
}

}  // namespace

void Marks::add(const read::Range& range) {
  using enum read::Range::Phase;
  if (range.phase != closed && range.phase != started && range.phase != ended) return;
  std::int64_t number = 0;
  const std::string_view name = step_name(range.name, number);
  if (name.empty()) return;
  if (range.phase == started) {
    if (started_.size() < kMost) started_[range.id] = range;
    return;
  }
  std::vector<Mark>& marks = by_name_[std::string(name)];
  if (marks.size() == kMost) return;
  if (range.phase == closed) {
    marks.push_back({number, range.ts_ns, range.ts_ns + range.dur_ns});
  } else if (const auto from = started_.find(range.id); from != started_.end()) {
    marks.push_back({number, from->second.ts_ns, range.ts_ns});
    started_.erase(from);
  }
}

std::vector<Mark> Marks::steps() const {
  std::vector<Mark> best;
  for (const auto& [name, all] : by_name_) {
    std::vector<Mark> marks = apart(all);
    if (reach(marks) > reach(best)) best = std::move(marks);
  }
  return best;
}

}  // namespace tprof::steps
