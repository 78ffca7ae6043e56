// The program's scopes as a process's ledger tells them. It is exact even where they have no lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collect/lines.h"
#include "stats/ranges.h"

namespace tprof::stats {

// The scopes of one name and category that ended.
struct ScopeTotal {
  std::string name;
  std::string category;  // empty: none
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t device_timed = 0;  // of `count`: those that have a time on the device
  std::uint64_t device_ns = 0;
  std::map<std::uint64_t, std::uint64_t> bins{};  // counts, by the bin's shortest duration
};
void add(ScopeTotal& to, const ScopeTotal& more);

// The scopes as of the last ledger. In a process that holds several ranks, the first has them.
struct ScopeLedger : collect::Collector {
  using Collector::Collector;
  void metadata(const read::Line& line, const read::Process& so_far) override;

  std::vector<ScopeTotal> scopes;
};

// Sums over all processes, by name and category.
class ScopeTotals {
 public:
  void add(const read::Process& process, const std::vector<ScopeTotal>& scopes);
  // Takes these figures where the lines show fewer scopes.
  void complete(RangeTotals& totals) const;

 private:
  struct Scope {
    ScopeTotal total;
    std::set<std::int64_t> ranks;
  };
  std::map<RangeKey, Scope> scopes_;
};

}  // namespace tprof::stats
