#include "interpose/marks/range_names.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "interpose/base/hash.h"
#include "interpose/base/lock.h"
#include "interpose/base/shared_map.h"
#include "interpose/base/text.h"

namespace tprof::range_names {
namespace {

// Untouched pages of it cost nothing.
constexpr std::uint32_t kBytes = 256 << 10;
char g_bytes[kBytes];
std::uint32_t g_used = 1;
// The place of a name in g_bytes, by its hash.
constinit SharedMap<std::uint32_t> g_place{LockOrder::handles};
const Name* g_domain[kMaxRangeDomains];  // the first is the default domain: no name
std::atomic<std::uint32_t> g_domains{1};
RangeCategory g_category[kMaxRangeCategories];
std::atomic<std::uint32_t> g_categories{0};
Lock g_lock{LockOrder::range_names};  // for adding to these

const Name* name_at(std::uint32_t place) {
  return reinterpret_cast<const Name*>(g_bytes + place);
}

RangeCategory category_of(std::uint8_t domain, std::uint32_t category, std::string_view name) {
  RangeCategory entry{category, domain, {}};
  copy_text(entry.name, name);
  return entry;
}

// Returns the first category for which same(category) is true, or adds `entry`, with a number from
// its place if it has none. Null: no room.
template <typename Same>
const RangeCategory* find_or_add(Same&& same, RangeCategory entry) {
  const auto known = [&]() -> const RangeCategory* {
    const std::span all(g_category, g_categories.load(std::memory_order_acquire));
    const auto found = std::ranges::find_if(all, same);
    return found == all.end() ? nullptr : &*found;
  };
  if (const RangeCategory* found = known()) return found;
  const LockGuard guard(g_lock);
  if (const RangeCategory* found = known()) return found;
  const std::uint32_t n = g_categories.load(std::memory_order_relaxed);
  if (n == kMaxRangeCategories) return nullptr;
  if (entry.category == 0) entry.category = n + 1;
  g_category[n] = entry;
  g_categories.store(n + 1, std::memory_order_release);
  return &g_category[n];
}

}  // namespace

std::size_t cut(std::string_view text, std::size_t most) {
  std::size_t n = std::min(text.size(), most);
  if (n < text.size()) {
    while (n > 0 && most - n < 3 && (text[n] & 0xc0) == 0x80) --n;
  }
  return n;
}

std::string_view cut(const char* text) {
  return {text, cut({text, strnlen(text, kMaxRangeName + 1)}, kMaxRangeName)};
}

const Name* intern(std::string_view text) {
  text = prefix(text, kMaxRangeName);
  const std::uint64_t hash = mix64(fnv1a(text));
  std::uint32_t place = 0;
  if (g_place.find(hash, place)) return name_at(place);
  const LockGuard guard(g_lock);
  if (g_place.find(hash, place)) return name_at(place);
  const auto size = static_cast<std::uint32_t>(text.size() + 1);
  if (g_used + size > kBytes) return nullptr;
  char* const at = g_bytes + g_used;
  at[0] = static_cast<char>(text.size());
  std::copy(text.begin(), text.end(), at + 1);
  if (!g_place.insert(hash, g_used)) return nullptr;
  g_used += size;
  return reinterpret_cast<const Name*>(at);
}

bool is_name(const void* pointer) {
  const auto* at = static_cast<const char*>(pointer);
  return at > g_bytes && at < g_bytes + kBytes;
}

std::uint8_t domain(std::string_view name) {
  const Name* mine = intern(name);
  if (mine == nullptr) return kUnknownDomain;
  const LockGuard guard(g_lock);
  const std::uint32_t n = g_domains.load(std::memory_order_relaxed);
  const std::uint32_t at =
      static_cast<std::uint32_t>(std::find(g_domain + 1, g_domain + n, mine) - g_domain);
  if (at == kMaxRangeDomains) return kUnknownDomain;
  if (at == n) {
    g_domain[n] = mine;
    g_domains.store(n + 1, std::memory_order_release);
  }
  return static_cast<std::uint8_t>(at);
}

std::string_view domain_name(std::uint8_t domain) {
  const bool named = domain != 0 && domain < g_domains.load(std::memory_order_acquire);
  return named ? g_domain[domain]->view() : std::string_view();
}

void name_category(std::uint8_t domain, std::uint32_t category, std::string_view name) {
  if (name.empty() || domain == kUnknownDomain) return;
  const auto same = [&](const RangeCategory& c) {
    return c.category == category && c.domain == domain;
  };
  find_or_add(same, category_of(domain, category, name));
}

std::uint32_t category_number(std::uint8_t domain, std::string_view name) {
  const RangeCategory wanted = category_of(domain, 0, name);
  const auto same = [&](const RangeCategory& c) {
    return c.domain == domain && std::strcmp(c.name, wanted.name) == 0;
  };
  const RangeCategory* found = find_or_add(same, wanted);
  return found == nullptr ? 0 : found->category;
}

bool category(std::uint32_t place, RangeCategory& to) {
  const bool known = place < g_categories.load(std::memory_order_acquire);
  if (known) to = g_category[place];
  return known;
}

}  // namespace tprof::range_names
