#include "stats/scope_totals.h"

#include <algorithm>

#include "interpose/format/line_kinds.h"
#include "interpose/format/scopes.h"
#include "read/json.h"
#include "read/metadata.h"

namespace tprof::stats {
namespace {

std::uint64_t count_or_0(const read::object& o, std::string_view key) {
  return read::find(o, key) ? read::count(o, key) : 0;
}

ScopeTotal scope_total(const read::object& o) {
  ScopeTotal s{.name = read::text(o, "scope"),
               .category = read::text_or_empty(o, "category"),
               .count = read::count(o, "count"),
               .total_ns = read::count(o, "total_ns"),
               .max_ns = read::count(o, "max_ns"),
               .elements = count_or_0(o, "elements"),
               .bytes = count_or_0(o, "bytes"),
               .errors = count_or_0(o, "errors"),
               .device_timed = count_or_0(o, "device_timed"),
               .device_ns = count_or_0(o, "device_ns")};
  for (const read::element bin : read::array_of(o, "bins")) {
    std::uint64_t from = 0;
    std::uint64_t n = 0;
    if (bin.at(0).get(from) != simdjson::SUCCESS || bin.at(1).get(n) != simdjson::SUCCESS ||
        from > kLongestScope || from != scope_bin_from(scope_bin(from))) {
      throw read::Malformed("expected pairs of a bin's shortest duration and a number in \"bins\"");
    }
    s.bins[from] = read::saturated_sum(s.bins[from], n);
  }
  return s;
}

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

void add(ScopeTotal& to, const ScopeTotal& more) {
  for (const auto sum :
       {&ScopeTotal::count, &ScopeTotal::total_ns, &ScopeTotal::elements, &ScopeTotal::bytes,
        &ScopeTotal::errors, &ScopeTotal::device_timed, &ScopeTotal::device_ns}) {
    to.*sum = read::saturated_sum(to.*sum, more.*sum);
  }
  to.max_ns = std::max(to.max_ns, more.max_ns);
  for (const auto& [from, n] : more.bins) to.bins[from] = read::saturated_sum(to.bins[from], n);
}

void ScopeLedger::metadata(const read::Line& line, const read::Process&) {
  if (rank_.lane != 0 || !is_line(line.text, LineKind::ledger)) return;
  simdjson::dom::parser parser;
  read::object top;
  if (parser.parse(line.text.data(), line.text.size()).get(top) != simdjson::SUCCESS) {
    throw read::Malformed("expected one JSON object on this line");
  }
  const read::object args = read::object_of(top, "args");
  scopes.clear();
  if (!read::find(args, "scopes")) return;
  for (const read::object& o : read::objects_of(args, "scopes")) scopes.push_back(scope_total(o));
}

void ScopeTotals::add(const read::Process& process, const std::vector<ScopeTotal>& scopes) {
  for (const ScopeTotal& scope : scopes) {
    Scope& to = scopes_[key_of(scope)];
    stats::add(to.total, scope);
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
