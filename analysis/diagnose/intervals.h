// A set of numbers that mostly come one after the other: sequence numbers that have a line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace tprof::diagnose {

class Intervals {
 public:
  // A number that was there already, or that would make the set too large, is counted and no more.
  void add(std::uint64_t n) {
    if (n == UINT64_MAX) {  // has no end
      ++left_out_;
      return;
    }
    if (!parts_.empty() && parts_.back().second == n) {  // as nearly always
      parts_.back().second = n + 1;
      return;
    }
    const auto next = behind(n);
    const auto before = next == parts_.begin() ? parts_.end() : std::prev(next);
    if (before != parts_.end() && n < before->second) {
      ++twice_;
      return;
    }
    const bool joins_next = next != parts_.end() && next->first == n + 1;
    if (before != parts_.end() && before->second == n) {
      before->second = joins_next ? next->second : n + 1;
      if (joins_next) parts_.erase(next);
    } else if (joins_next) {
      next->first = n;
    } else if (parts_.size() < kMaxParts) {
      parts_.emplace(next, n, n + 1);
    } else {
      ++left_out_;
    }
  }

  bool empty() const { return parts_.empty(); }
  std::uint64_t begin() const { return empty() ? 0 : parts_.front().first; }
  std::uint64_t end() const { return empty() ? 0 : parts_.back().second; }
  std::uint64_t twice() const { return twice_; }
  bool left_out() const { return left_out_ != 0; }  // some numbers are not here: too many gaps

  // First number from `from` on that is not in it.
  std::uint64_t covered_until(std::uint64_t from) const {
    const auto next = behind(from);
    if (next == parts_.begin()) return from;
    const std::uint64_t end = std::prev(next)->second;
    return end > from ? end : from;
  }

  // First number of it that is not below `from`; nothing: no more.
  std::optional<std::uint64_t> next(std::uint64_t from) const {
    const auto after = behind(from);
    if (after != parts_.begin() && from < std::prev(after)->second) return from;
    return after == parts_.end() ? std::nullopt : std::optional(after->first);
  }

  const auto& parts() const { return parts_; }  // begin and end, ascending

 private:
  static constexpr std::size_t kMaxParts = 4096;
  using Parts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

  // The first that begins behind `n`.
  Parts::iterator behind(std::uint64_t n) {
    return std::ranges::upper_bound(parts_, n, {}, &Parts::value_type::first);
  }
  Parts::const_iterator behind(std::uint64_t n) const {
    return std::ranges::upper_bound(parts_, n, {}, &Parts::value_type::first);
  }

  Parts parts_;
  std::uint64_t twice_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace tprof::diagnose
