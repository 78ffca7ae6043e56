// Spans of time on one device, and how much of them lies within others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tprof::why {

struct Span {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;

  std::int64_t ns() const { return to_ns - from_ns; }
  bool operator==(const Span&) const = default;
};
using Spans = std::vector<Span>;

// Puts them in order and makes one of those that touch; empty ones go.
inline void join(Spans& spans) {
  if (!std::ranges::is_sorted(spans, {}, &Span::from_ns)) {
    std::ranges::sort(spans, {}, &Span::from_ns);
  }
  std::size_t kept = 0;
  for (const Span& s : spans) {
    if (s.to_ns <= s.from_ns) continue;
    if (kept != 0 && s.from_ns <= spans[kept - 1].to_ns) {
      spans[kept - 1].to_ns = std::max(spans[kept - 1].to_ns, s.to_ns);
    } else {
      spans[kept++] = s;
    }
  }
  spans.resize(kept);
}

// Returns the first that ends behind `at`. The spans are joined, as for all that follows.
inline Spans::const_iterator first_behind(const Spans& spans, std::int64_t at) {
  return std::ranges::upper_bound(spans, at, {}, &Span::to_ns);
}

// How much of a time they cover. Most times that are asked for are just behind the one before.
class Cover {
 public:
  explicit Cover(const Spans& spans) : spans_(spans) {}

  std::int64_t operator()(std::int64_t from, std::int64_t to) {
    auto s = spans_.begin() + static_cast<std::ptrdiff_t>(near_);
    if (s != spans_.begin() && std::prev(s)->to_ns > from) {
      s = first_behind(spans_, from);
    } else {
      for (int i = 0; s != spans_.end() && s->to_ns <= from; ++s) {
        if (++i == 8) {
          s = std::ranges::upper_bound(s, spans_.end(), from, {}, &Span::to_ns);
          break;
        }
      }
    }
    near_ = static_cast<std::size_t>(s - spans_.begin());
    std::int64_t ns = 0;
    for (; s != spans_.end() && s->from_ns < to; ++s) {
      ns += std::min(s->to_ns, to) - std::max(s->from_ns, from);
    }
    return ns;
  }

 private:
  const Spans& spans_;
  std::size_t near_ = 0;  // the first that ends behind the last `from`
};

// Returns what is in one of them.
inline Spans either(const Spans& a, const Spans& b) {
  Spans all(a.size() + b.size());
  std::ranges::merge(a, b, all.begin(), {}, &Span::from_ns, &Span::from_ns);
  join(all);
  return all;
}

// Returns what is in both.
inline Spans common(const Spans& a, const Spans& b) {
  Spans both;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    const Span s{std::max(i->from_ns, j->from_ns), std::min(i->to_ns, j->to_ns)};
    if (s.from_ns < s.to_ns) both.push_back(s);
    ++(i->to_ns < j->to_ns ? i : j);
  }
  return both;
}

}  // namespace tprof::why
