// The program's scopes as a process's ledger tells them. It is exact even where they have no lines.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "read/told_lines.h"
#include "run/lines.h"
#include "stats/ranges.h"

namespace tprof::stats {

// The scopes as of the last ledger. In a process that holds several ranks, the first has them.
std::span<const read::ScopeTotal> scopes_of(const run::Lines& lines, const read::Process& rank);

// Sums over all processes, by name and category.
class ScopeTotals {
 public:
  void add(const read::Process& process, std::span<const read::ScopeTotal> scopes);
  // Takes these figures where the lines show fewer scopes.
  void complete(RangeTotals& totals) const;

 private:
  struct Scope {
    read::ScopeTotal total;
    std::set<std::int64_t> ranks;
  };
  std::map<RangeKey, Scope> scopes_;
};

}  // namespace tprof::stats
