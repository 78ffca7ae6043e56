#include "interpose/marks/range_names.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "interpose/base/hash.h"

namespace tprof::range_names {
namespace {

// Pages of it exist once they are written to.
constexpr std::uint32_t kBytes = 256 << 10;
char g_bytes[kBytes];
std::atomic<std::uint32_t> g_used{1};  // place 0: none

constexpr std::uint32_t kPlaces = 16384;
constexpr std::uint32_t kProbe = 32;
// The place of a name in g_bytes, by its hash. This is no SharedMap: ranges take no lock, and keys
// are texts.
std::atomic<std::uint32_t> g_place[kPlaces];

std::atomic<const Name*> g_domain[kMaxRangeDomains];  // the first is the default domain: no name
std::atomic<const Name*> g_category[kMaxRangeCategories];  // each is the bytes of a RangeCategory

// Copies the entry out, since it is not aligned where it lies.
RangeCategory category_in(const Name& bytes) {
  RangeCategory category;
  std::memcpy(&category, bytes.text, sizeof category);
  return category;
}

const Name* name_at(std::uint32_t place) {
  return reinterpret_cast<const Name*>(g_bytes + place);
}

std::uint32_t put(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size() + 1);
  if (g_used.load(std::memory_order_relaxed) + size > kBytes) return 0;
  const std::uint32_t place = g_used.fetch_add(size, std::memory_order_relaxed);
  if (place + size > kBytes) return 0;
  g_bytes[place] = static_cast<char>(text.size());
  std::memcpy(g_bytes + place + 1, text.data(), text.size());
  return place;
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
  if (text.size() > kMaxRangeName) text = {text.data(), kMaxRangeName};
  const std::uint64_t hash = mix64(fnv1a(text));
  std::uint32_t mine = 0;
  for (std::uint32_t n = 0; n < kProbe; ++n) {
    std::atomic<std::uint32_t>& at = g_place[(hash + n) % kPlaces];
    std::uint32_t place = at.load(std::memory_order_acquire);
    if (place == 0) {
      if (mine == 0) mine = put(text);
      if (mine == 0) return nullptr;
      if (at.compare_exchange_strong(place, mine, std::memory_order_acq_rel)) return name_at(mine);
    }
    if (name_at(place)->view() == text) return name_at(place);
  }
  return nullptr;
}

bool is_name(const void* pointer) {
  const auto* at = static_cast<const char*>(pointer);
  return at > g_bytes && at < g_bytes + kBytes;
}

std::uint8_t domain(std::string_view name) {
  const Name* mine = intern(name);
  if (mine == nullptr) return kUnknownDomain;
  for (std::uint32_t i = 1; i < kMaxRangeDomains; ++i) {
    const Name* at = g_domain[i].load(std::memory_order_acquire);
    if (at == nullptr && g_domain[i].compare_exchange_strong(at, mine, std::memory_order_acq_rel)) {
      at = mine;
    }
    if (at == mine) return static_cast<std::uint8_t>(i);
  }
  return kUnknownDomain;
}

std::string_view domain_name(std::uint8_t domain) {
  const Name* name =
      domain < kMaxRangeDomains ? g_domain[domain].load(std::memory_order_acquire) : nullptr;
  return name == nullptr ? std::string_view() : name->view();
}

namespace {

RangeCategory category_of(std::uint8_t domain, std::uint32_t category, std::string_view name) {
  RangeCategory entry{};
  entry.category = category;
  entry.domain = domain;
  std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof entry.name - 1));
  return entry;
}

const Name* intern_category(const RangeCategory& entry) {
  return intern({reinterpret_cast<const char*>(&entry), sizeof entry});
}

// Returns what is there from now on: `mine`, or what another thread put there.
const Name* put_if_free(std::atomic<const Name*>& place, const Name* mine) {
  const Name* there = nullptr;
  return place.compare_exchange_strong(there, mine, std::memory_order_acq_rel) ? mine : there;
}

}  // namespace

void name_category(std::uint8_t domain, std::uint32_t category, std::string_view name) {
  if (name.empty() || domain == kUnknownDomain) return;
  const Name* mine = intern_category(category_of(domain, category, name));
  if (mine == nullptr) return;
  for (auto& place : g_category) {
    const RangeCategory known = category_in(*put_if_free(place, mine));
    if (known.category == category && known.domain == domain) return;
  }
}

std::uint32_t category_number(std::uint8_t domain, std::string_view name) {
  for (std::uint32_t i = 0; i < kMaxRangeCategories; ++i) {
    const RangeCategory wanted = category_of(domain, i + 1, name);
    const Name* at = g_category[i].load(std::memory_order_acquire);
    if (at == nullptr) {
      const Name* mine = intern_category(wanted);
      if (mine == nullptr) return 0;
      at = put_if_free(g_category[i], mine);
    }
    const RangeCategory known = category_in(*at);
    if (known.domain == domain && std::memcmp(known.name, wanted.name, sizeof known.name) == 0) {
      return known.category;
    }
  }
  return 0;
}

bool category(std::uint32_t place, RangeCategory& to) {
  const Name* name =
      place < kMaxRangeCategories ? g_category[place].load(std::memory_order_acquire) : nullptr;
  if (name != nullptr) to = category_in(*name);
  return name != nullptr;
}

}  // namespace tprof::range_names
