#include "stats/scope_totals.h"

#include <algorithm>

#include "interpose/format/scopes.h"

namespace tprof::stats {
namespace {

using read::ScopeTotal;

RangeKey key_of(const ScopeTotal& scope) {
  return {.domain = std::string(kScopeDomain), .name = scope.name, .category_name = scope.category};
}

bool is_step(const std::string& name) {
  return name.starts_with(std::string(kScopeStep) + " ");
}

void complete(RangeTotal& range, const ScopeTotal& told) {
  range.device_timed = told.device_timed;
  range.device_ns = told.device_ns;
  if (told.count <= range.time.count) return;
  range.beyond = told.count - range.time.count;
  range.time.set_sums(told.count, told.total_ns, told.max_ns);
  range.elements = std::max(range.elements, told.elements);
  range.bytes = std::max(range.bytes, told.bytes);
  range.errors = told.errors;
}

}  // namespace

std::span<const ScopeTotal> scopes_of(const run::Lines& lines, const read::Process& rank) {
  const run::Said* said = rank.lane == 0 ? lines.said(rank) : nullptr;
  return said == nullptr ? std::span<const ScopeTotal>() : std::span(said->scopes);
}

void ScopeTotals::add(const read::Process& process, std::span<const ScopeTotal> scopes) {
  for (const ScopeTotal& scope : scopes) {
    Scope& to = scopes_[key_of(scope)];
    read::add(to.total, scope);
    to.ranks.insert(process.header.rank.value_or(-1));
  }
}

void ScopeTotals::complete(RangeTotals& totals) const {
  std::uint64_t found = 0;
  for (const auto& [key, scope] : scopes_) {
    ScopeTotal total = scope.total;
    if (key.name == kOtherScopes) {
      // Scopes with names beyond the last row of the ledger may have lines under their own names.
      for (const auto& [range, told] : totals.ranges) {
        const bool other = range.domain == kScopeDomain && !range.mark && !is_step(range.name) &&
                           !scopes_.contains(range);
        if (!other) continue;
        total.count -= std::min(total.count, told.time.count);
        total.total_ns -= std::min(total.total_ns, told.time.total_ns);
      }
      if (total.count == 0) continue;
    }
    RangeTotal& range = totals.ranges[key];
    stats::complete(range, total);
    range.ranks.insert(scope.ranks.begin(), scope.ranks.end());
    found += range.beyond;
  }
  totals.dropped -= std::min(totals.dropped, found);
}

}  // namespace tprof::stats
