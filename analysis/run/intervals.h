// Intervals of time. A joined list is in order, and no two of its intervals touch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tprof::run {

struct Interval {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;

  std::int64_t ns() const { return to_ns - from_ns; }
  bool operator==(const Interval&) const = default;
};
using Intervals = std::vector<Interval>;

// Sorts them, merges those that touch, and drops empty ones.
inline Intervals joined(Intervals all) {
  if (!std::ranges::is_sorted(all, {}, &Interval::from_ns)) {
    std::ranges::sort(all, {}, &Interval::from_ns);
  }
  std::size_t kept = 0;
  for (const Interval& i : all) {
    if (i.to_ns <= i.from_ns) continue;
    if (kept != 0 && i.from_ns <= all[kept - 1].to_ns) {
      all[kept - 1].to_ns = std::max(all[kept - 1].to_ns, i.to_ns);
    } else {
      all[kept++] = i;
    }
  }
  all.resize(kept);
  return all;
}

// Returns the first that ends after `ns`. All functions from here on take joined lists.
inline Intervals::const_iterator first_after(const Intervals& all, std::int64_t ns) {
  return std::ranges::upper_bound(all, ns, {}, &Interval::to_ns);
}

// Returns how much of `time` they cover.
inline std::int64_t covered(const Intervals& all, Interval time) {
  if (time.ns() <= 0) return 0;
  std::int64_t ns = 0;
  for (auto i = first_after(all, time.from_ns); i != all.end() && i->from_ns < time.to_ns; ++i) {
    ns += std::min(i->to_ns, time.to_ns) - std::max(i->from_ns, time.from_ns);
  }
  return ns;
}

// Returns the union.
inline Intervals either(const Intervals& a, const Intervals& b) {
  Intervals all(a.size() + b.size());
  std::ranges::merge(a, b, all.begin(), {}, &Interval::from_ns, &Interval::from_ns);
  return joined(std::move(all));
}

// Returns the intersection.
inline Intervals common(const Intervals& a, const Intervals& b) {
  Intervals both;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    const Interval in{std::max(i->from_ns, j->from_ns), std::min(i->to_ns, j->to_ns)};
    if (in.ns() > 0) both.push_back(in);
    ++(i->to_ns < j->to_ns ? i : j);
  }
  return both;
}

// Returns what is in `a` and not in `b`.
inline Intervals without(const Intervals& a, const Intervals& b) {
  Intervals rest;
  for (Interval i : a) {
    for (auto at = first_after(b, i.from_ns); at != b.end() && at->from_ns < i.to_ns; ++at) {
      if (i.from_ns < at->from_ns) rest.push_back({i.from_ns, at->from_ns});
      i.from_ns = at->to_ns;
    }
    if (i.from_ns < i.to_ns) rest.push_back(i);
  }
  return rest;
}

}  // namespace tprof::run
