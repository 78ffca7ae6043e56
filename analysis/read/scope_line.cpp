#include "read/scope_line.h"

#include <algorithm>

#include "interpose/format/scopes.h"
#include "read/json.h"
#include "read/rows.h"

namespace tprof::read {
namespace {

ScopeTotal scope_total(const object& o) {
  ScopeTotal s{.name = text(o, "scope"),
               .category = text_or_empty(o, "category"),
               .count = count(o, "count"),
               .total_ns = count(o, "total_ns"),
               .max_ns = count(o, "max_ns"),
               .elements = count_or_0(o, "elements"),
               .bytes = count_or_0(o, "bytes"),
               .errors = count_or_0(o, "errors"),
               .device_timed = count_or_0(o, "device_timed"),
               .device_ns = count_or_0(o, "device_ns")};
  for (const element bin : array_of(o, "bins")) {
    std::uint64_t from = 0;
    std::uint64_t n = 0;
    if (bin.at(0).get(from) != simdjson::SUCCESS || bin.at(1).get(n) != simdjson::SUCCESS ||
        from > kLongestScope || from != scope_bin_from(scope_bin(from))) {
      throw Malformed("expected pairs of a bin's shortest duration and a number in \"bins\"");
    }
    s.bins[from] = saturated_sum(s.bins[from], n);
  }
  return s;
}

}  // namespace

void add(ScopeTotal& to, const ScopeTotal& more) {
  for (const auto sum :
       {&ScopeTotal::count, &ScopeTotal::total_ns, &ScopeTotal::elements, &ScopeTotal::bytes,
        &ScopeTotal::errors, &ScopeTotal::device_timed, &ScopeTotal::device_ns}) {
    to.*sum = saturated_sum(to.*sum, more.*sum);
  }
  to.max_ns = std::max(to.max_ns, more.max_ns);
  for (const auto& [from, n] : more.bins) to.bins[from] = saturated_sum(to.bins[from], n);
}

std::vector<ScopeTotal> scopes_of(std::string_view ledger_line) {
  simdjson::dom::parser parser;
  const object args = object_of(object_in(parser, ledger_line), "args");
  std::vector<ScopeTotal> scopes;
  if (!find(args, "scopes")) return scopes;
  for (const object& o : objects_of(args, "scopes")) scopes.push_back(scope_total(o));
  return scopes;
}

}  // namespace tprof::read
