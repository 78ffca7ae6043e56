#include "steps/marks.h"

#include <algorithm>
#include <utility>

#include "interpose/format/step_mark.h"

namespace tprof::steps {
namespace {

// Drops marks inside other marks, since steps don't nest.
std::vector<Interval> apart(std::vector<Interval> marks) {
  std::ranges::sort(marks, {}, &Interval::from_ns);
  std::vector<Interval> all;
  for (const Interval& m : marks) {
    if (all.empty() || m.from_ns >= all.back().to_ns) all.push_back(m);
  }
  return all;
}

std::int64_t reach(const std::vector<Interval>& marks) {
  std::int64_t sum = 0;
  for (const Interval& m : marks) sum += m.to_ns - m.from_ns;
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
  std::vector<Interval>& marks = by_name_[std::string(name)];
  if (marks.size() == kMost) return;
  if (range.phase == closed) {
    marks.push_back({number, range.ts_ns, range.ts_ns + range.dur_ns});
  } else if (const auto from = started_.find(range.id); from != started_.end()) {
    marks.push_back({number, from->second.ts_ns, range.ts_ns});
    started_.erase(from);
  }
}

std::vector<Interval> Marks::steps() const {
  std::vector<Interval> best;
  for (const auto& [name, all] : by_name_) {
    std::vector<Interval> marks = apart(all);
    if (reach(marks) > reach(best)) best = std::move(marks);
  }
  return best;
}

bool count_on(std::map<const read::Process*, std::vector<Interval>>& ranks) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers;  // by epoch and own number
  for (auto& [rank, intervals] : ranks) {
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      const bool again = k != 0 && intervals[k].step <= intervals[k - 1].step;
      intervals[k].epoch = k == 0 ? 0 : intervals[k - 1].epoch + (again ? 1 : 0);
      numbers[{intervals[k].epoch, intervals[k].step}] = 0;
    }
  }
  if (numbers.empty() || numbers.rbegin()->first.first == 0) return false;
  std::int64_t next = 0;
  for (auto& [of, number] : numbers) {
    if (of.first == 0) next = of.second;  // the first epoch keeps its numbers
    number = next++;
  }
  for (auto& [rank, intervals] : ranks) {
    for (Interval& i : intervals) i.step = numbers.at({i.epoch, i.step});
  }
  return true;
}

}  // namespace tprof::steps
