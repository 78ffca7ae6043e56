// A set of ranks, or of other numbers, as the ranges that people read.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tprof::text {

class Ranks {
 public:
  Ranks() = default;
  explicit Ranks(std::vector<std::int64_t> numbers);  // in any order

  bool empty() const { return ranges_.empty(); }
  std::uint64_t size() const;
  bool contains(std::int64_t number) const;
  void add(const Ranks& others);

  std::vector<std::int64_t> list() const;  // ascending
  std::string str() const;                 // "0-3,7"

  auto operator<=>(const Ranks&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
    auto operator<=>(const Range&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::vector<Range> ranges_;  // ascending, with a gap between each and the next
};

// "rank 3", "ranks 0-2", "ranks 0-2 and 2 processes that are no ranks", "1 process that is no
// rank". A long list is cut, with the number of ranks behind it.
std::string names_of(const Ranks& ranks, std::uint64_t no_ranks = 0);

}  // namespace tprof::text
