#include "interpose/marks/scope_totals.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/format/scopes.h"
#include "interpose/record/tables.h"

namespace tprof::marks {
namespace {

// Entries of the mapped table by the hash of name and category. Half of it stays free.
constexpr std::uint32_t kPlaces = 2 * kMaxScopes;
constinit std::atomic<const ScopeName*> g_place[kPlaces];
constinit std::atomic<std::uint32_t> g_number[kPlaces];
Lock g_adding{LockOrder::scopes};

std::uint32_t category_of(const OpenRange& range) {
  return (range.given & kGivenCategory) != 0 ? range.attributes.category : 0;
}

// `text` has room for a whole word behind its last byte.
std::uint64_t hash_of(std::string_view text, std::uint32_t category) {
  std::uint64_t h = text.size() ^ std::uint64_t{category} << 32;
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::size_t left = text.size() - i;
    if (left < 8) word &= (std::uint64_t{1} << (8 * left)) - 1;
    h = std::rotl((h ^ word) * 0x9e3779b97f4a7c15ULL, 29);
  }
  return h;
}

// Returns the place of that scope, or the free one where it would be.
std::uint32_t place_of(const OpenRange& range, std::string_view name, std::uint64_t hash) {
  for (std::uint32_t n = 0;; ++n) {
    const std::uint32_t at = (hash + n) % kPlaces;
    const ScopeName* there = g_place[at].load(std::memory_order_acquire);
    if (there == nullptr) return at;
    if (there->length == name.size() && there->category == category_of(range) &&
        std::memcmp(there->text, name.data(), name.size()) == 0) {
      return at;
    }
  }
}

[[gnu::cold, gnu::noinline]] std::uint32_t add(const OpenRange& range, std::string_view name,
                                               std::uint64_t hash) {
  const LockGuard guard(g_adding);
  const std::uint32_t at = place_of(range, name, hash);
  if (g_place[at].load(std::memory_order_relaxed) != nullptr) return g_number[at];
  ScopeName entry{};
  entry.category = category_of(range);
  entry.length = static_cast<std::uint32_t>(name.size());
  std::memcpy(entry.text, name.data(), name.size());
  Table& table = session::mapping().head().scopes;
  const std::uint32_t number = tables::append(
      table, entry, [](std::uint32_t) {}, kMaxScopes - 1);
  if (number == 0) return kMaxScopes;
  g_number[at].store(number, std::memory_order_relaxed);
  const std::uint64_t chunk = table.chunk[(number - 1) / kChunkEntries];
  g_place[at].store(session::mapping().at<ScopeName>(chunk) + (number - 1) % kChunkEntries,
                    std::memory_order_release);
  return number;
}

}  // namespace

std::uint32_t scope_number(const OpenRange& range) {
  const std::string_view name = range_text(range);
  const std::uint64_t hash = hash_of(name, category_of(range));
  const std::uint32_t at = place_of(range, name, hash);
  if (g_place[at].load(std::memory_order_relaxed) == nullptr) return add(range, name, hash);
  return g_number[at].load(std::memory_order_relaxed);
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
  for (auto& place : g_place) place.store(nullptr, std::memory_order_relaxed);
}

}  // namespace tprof::marks
