#include "text/ranks.h"

#include <algorithm>

#include "text/text.h"

namespace tprof::text {

Ranks::Ranks(std::vector<std::int64_t> numbers) {
  std::ranges::sort(numbers);
  for (const std::int64_t n : numbers) {
    if (ranges_.empty() || n > ranges_.back().last) {
      const bool next = !ranges_.empty() && n - 1 == ranges_.back().last;
      next ? void(ranges_.back().last = n) : ranges_.push_back({n, n});
    }
  }
}

std::uint64_t Ranks::size() const {
  std::uint64_t n = 0;
  for (const auto& [first, last] : ranges_) {
    n += static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
  }
  return n;
}

bool Ranks::contains(std::int64_t number) const {
  const auto range = std::ranges::lower_bound(ranges_, number, {}, &Range::last);
  return range != ranges_.end() && range->first <= number;
}

void Ranks::add(const Ranks& others) {
  std::vector<Range> all;
  std::ranges::merge(ranges_, others.ranges_, std::back_inserter(all), {}, &Range::first,
                     &Range::first);
  ranges_.clear();
  for (const Range& r : all) {
    const bool apart =
        ranges_.empty() || (r.first > ranges_.back().last && r.first - 1 > ranges_.back().last);
    if (apart) {
      ranges_.push_back(r);
    } else {
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    }
  }
}

std::vector<std::int64_t> Ranks::list() const {
  std::vector<std::int64_t> all;
  all.reserve(size());
  for (const auto& [first, last] : ranges_) {
    for (std::int64_t n = first; n < last; ++n) all.push_back(n);
    all.push_back(last);
  }
  return all;
}

std::string Ranks::str() const {
  std::string out;
  for (const auto& [first, last] : ranges_) {
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return out;
}

std::string names_of(const Ranks& ranks, std::uint64_t no_ranks) {
  constexpr std::size_t kLength = 100;  // of a list, so that 10,000 ranks do not fill the screen
  std::string names = ranks.str();
  if (names.size() > kLength) {
    names.resize(names.rfind(',', kLength));
    names += ",... (" + thousands(ranks.size()) + " ranks)";
  }
  if (!ranks.empty()) names = (ranks.size() == 1 ? "rank " : "ranks ") + names;
  if (no_ranks == 0) return names;
  return names + (ranks.empty() ? "" : " and ") + thousands(no_ranks) +
         (no_ranks == 1 ? " process that is no rank" : " processes that are no ranks");
}

}  // namespace tprof::text
