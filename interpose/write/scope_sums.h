// The totals of the program's scopes over all threads, for the ledger's line and for the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "interpose/format/scopes.h"
#include "interpose/write/range_lines.h"
#include "interpose/write/totals.h"

namespace tprof {

struct ScopeSums {
  std::uint64_t count, total_ns, elements, bytes, errors, device_ns, device_timed;
  std::uint64_t max_ns, device_max_ns;
};

inline void add(ScopeSums& to, const Total& t) {
  if (t.key.dtype == static_cast<std::uint8_t>(ScopeRow::amounts)) {
    to.elements += t.values.count;
    to.bytes += t.values.host_ns;
    return;
  }
  to.count += t.values.calls;
  to.total_ns += t.values.host_ns;
  to.max_ns = std::max(to.max_ns, t.values.host_ns_max);
  to.errors += t.values.failed;
  to.device_timed += t.timed.calls;
  to.device_ns += t.timed.host_ns;
  to.device_max_ns = std::max(to.device_max_ns, t.timed.host_ns_max);
}

// Collects the rows of scopes, sorted by scope, kind and bin.
[[gnu::cold]] inline void scope_rows(const Pages<Total>& all, Pages<Total>& rows) {
  for (const Total& t : all) {
    if (t.key.function == kMetaScope && t.key.comm <= kMaxScopes) rows.push_back(t);
  }
  std::sort(rows.begin(), rows.end(), [](const Total& a, const Total& b) {
    const auto order = [](const LedgerKey& k) {
      return std::tuple(k.comm, k.dtype, static_cast<std::uint8_t>(k.bytes_class));
    };
    return order(a.key) < order(b.key);
  });
}

// Calls f(scope, sums, first row, end of rows) for each scope.
template <typename F>
void each_scope(const Pages<Total>& rows, F&& f) {
  for (const Total* t = rows.begin(); t != rows.end();) {
    const Total* const first = t;
    ScopeSums sums{};
    for (; t != rows.end() && t->key.comm == first->key.comm; ++t) add(sums, *t);
    f(first->key.comm, sums, first, t);
  }
}

inline std::string_view scope_name(const View& view, std::uint32_t scope) {
  const ScopeName* known = view.scope(scope);
  return known == nullptr ? kOtherScopes : known->view();
}

inline std::string_view scope_category(const View& view, std::uint32_t scope) {
  const ScopeName* known = view.scope(scope);
  if (known == nullptr || known->category == 0) return {};
  for (std::uint32_t d = 1; d < kMaxRangeDomains; ++d) {
    if (bounded_text(view.head().range_domain[d].name) == kScopeDomain) {
      return category_name(view, static_cast<std::uint8_t>(d), known->category);
    }
  }
  return {};
}

[[gnu::cold]] inline void scopes_array(Text& out, const View& view, const Pages<Total>& all) {
  Pages<Total> rows;
  scope_rows(all, rows);
  if (rows.failed()) out.fail();
  if (rows.size() == 0) return;
  out << ",\"scopes\":[";
  Comma comma;
  each_scope(rows, [&](std::uint32_t scope, const ScopeSums& s, const Total* row,
                       const Total* end) {
    out << comma.next() << "{\"scope\":";
    out.string(scope_name(view, scope));
    const std::string_view category = scope_category(view, scope);
    if (!category.empty()) (out << ",\"category\":").string(category);
    out << ",\"count\":" << s.count << ",\"total_ns\":" << s.total_ns << ",\"max_ns\":" << s.max_ns;
    if (s.elements != 0) out << ",\"elements\":" << s.elements;
    if (s.bytes != 0) out << ",\"bytes\":" << s.bytes;
    if (s.errors != 0) out << ",\"errors\":" << s.errors;
    if (s.device_timed != 0) {
      out << ",\"device_timed\":" << s.device_timed << ",\"device_ns\":" << s.device_ns
          << ",\"device_ns_max\":" << s.device_max_ns;
    }
    out << ",\"bins\":[";
    Comma bin;
    for (; row != end; ++row) {
      const bool times = row->key.dtype == static_cast<std::uint8_t>(ScopeRow::times);
      if (!times || row->values.calls == 0) continue;
      out << bin.next() << '[' << scope_bin_from(static_cast<std::uint8_t>(row->key.bytes_class))
          << ',' << row->values.calls << ']';
    }
    out << "]}";
  });
  out << ']';
}

}  // namespace tprof
