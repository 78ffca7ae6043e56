// The program's scopes as a process's ledger tells them. It is exact even where they have no lines.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "collect/lines.h"
#include "read/scope_line.h"
#include "stats/ranges.h"

namespace tprof::stats {

// The scopes as of the last ledger. In a process that holds several ranks, the first has them.
struct ScopeLedger : collect::Collector {
  using Collector::Collector;
  void metadata(const read::Line& line, const read::Process& so_far) override;
  bool wants_metadata() const override { return true; }
  void state(team::Archive& archive) override { archive(scopes); }

  std::vector<read::ScopeTotal> scopes;
};

// Sums over all processes, by name and category.
class ScopeTotals {
 public:
  void add(const read::Process& process, const std::vector<read::ScopeTotal>& scopes);
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
