// Those that moved the same.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "diagnose/who.h"
#include "text/ranks.h"

namespace tprof::budget {

struct Members {
  text::Ranks numbers{};              // of ranks
  std::vector<std::string> others{};  // ascending; of processes without a rank: "pid 17 on node7"

  Members() = default;
  Members(std::initializer_list<std::int64_t> ranks) : numbers(std::vector(ranks)) {}
  explicit Members(const diagnose::Processes& all);

  std::size_t size() const { return numbers.size() + others.size(); }
  void add(const Members& more);

  std::string list() const;   // "0-3,7", "0-3,7, pid 17 on node7"
  std::string names() const;  // "rank 3", "ranks 0-3,7, pid 17 on node7"

  auto operator<=>(const Members&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace tprof::budget
