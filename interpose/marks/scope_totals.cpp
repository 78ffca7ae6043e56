#include "interpose/marks/scope_totals.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/scopes.h"
#include "interpose/record/tables.h"

namespace tprof::marks {
namespace {

// Maps a scope's key to its number.
constinit SharedMap<std::uint32_t> g_scopes{LockOrder::handles};
Lock g_adding{LockOrder::scopes};

std::uint32_t category_of(const OpenRange& range) {
  return (range.given & kGivenCategory) != 0 ? range.attributes.category : 0;
}

// The hash of name and category. `text` has room for a whole word behind its last byte.
std::uint64_t key_of(std::string_view text, std::uint32_t category) {
  std::uint64_t h = text.size() ^ std::uint64_t{category} << 32;
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::size_t left = text.size() - i;
    if (left < 8) word &= (std::uint64_t{1} << (8 * left)) - 1;
    h = std::rotl((h ^ word) * 0x9e3779b97f4a7c15ULL, 29);
  }
  return std::max<std::uint64_t>(h, 2);  // what a SharedMap has as keys
}

[[gnu::cold, gnu::noinline]] std::uint32_t add(std::uint64_t key, std::string_view name,
                                               std::uint32_t category) {
  const LockGuard guard(g_adding);
  std::uint32_t number = 0;
  if (g_scopes.find(key, number)) return number;  // another thread was faster
  ScopeName entry{};
  entry.category = category;
  entry.length = static_cast<std::uint32_t>(name.size());
  std::memcpy(entry.text, name.data(), name.size());
  number = tables::append(
      session::mapping().head().scopes, entry, [](std::uint32_t) {}, kMaxScopes - 1);
  if (number == 0) return kMaxScopes;
  g_scopes.insert(key, number);
  return number;
}

}  // namespace

std::uint32_t scope_number(const OpenRange& range) {
  const std::string_view name = range_text(range);
  const std::uint32_t category = category_of(range);
  const std::uint64_t key = key_of(name, category);
  std::uint32_t number = 0;
  return g_scopes.find(key, number) ? number : add(key, name, category);
}

void add_totals(Transaction& transaction, const OpenRange& range, std::uint32_t scope,
                std::uint64_t dur_ns) {
  const std::uint64_t ns = std::min(dur_ns, kLongestScope);
  LedgerValues& times = transaction.values(scope_key(scope, ScopeRow::times, scope_bin(ns)));
  ++times.calls;
  times.host_ns += ns;
  times.host_ns_max = std::max(times.host_ns_max, ns);
  if ((range.given & (kGivenAmounts | kGivenError)) == 0) [[likely]]
    return;
  if ((range.given & kGivenError) != 0) ++times.failed;
  if ((range.given & kGivenAmounts) == 0) return;
  LedgerValues& amounts = transaction.values(scope_key(scope, ScopeRow::amounts, 0));
  ++amounts.calls;
  amounts.count += range.amounts.elements;
  amounts.host_ns += range.amounts.bytes;
}

void forget_scopes() {
  g_scopes.clear();
}

}  // namespace tprof::marks
