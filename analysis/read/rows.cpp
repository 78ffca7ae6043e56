#include "read/rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "interpose/format/dtypes.h"

namespace tprof::read {
namespace {

using Figures = std::array<std::uint64_t, std::size(kFigures)>;
using Which = std::uint32_t;  // one bit per figure
static_assert(std::size(kFigures) <= 32);

struct HashOfKey {
  std::size_t operator()(const RowKey& k) const {
    const std::hash<std::string_view> text;
    std::size_t all = text(k.name);
    const auto add = [&](std::size_t part) {
      all = (all ^ part) * 0x9e3779b97f4a7c15 + (all >> 29);
    };
    add(text(k.dtype));
    add(static_cast<std::size_t>(k.bucket) << 24 | static_cast<std::size_t>(k.host_memory) << 16 |
        static_cast<std::size_t>(k.mode) << 8 | static_cast<std::size_t>(k.thread));
    add(static_cast<std::size_t>(k.comm.value_or(-1)));
    add(static_cast<std::size_t>(k.device.value_or(-1)));
    add(static_cast<std::size_t>(k.bytes_class));
    return all;
  }
};

}  // namespace

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

std::uint64_t element_size(std::string_view dtype) {
  if (dtype == "byte") return 1;
  if (dtype.size() == 5 && dtype.starts_with("byte")) {
    return static_cast<std::uint64_t>(dtype[4] - '0');
  }
  const auto* known = std::ranges::find(kDtypes, dtype, &DtypeInfo::name);
  return known == std::end(kDtypes) ? 0 : known->size;
}

Amounts& Amounts::operator+=(const Amounts& other) {
  for (const Figure& f : kFigures) {
    std::uint64_t& mine = this->*f.of;
    const std::uint64_t more = other.*f.of;
    mine = f.largest ? std::max(mine, more) : saturated_sum(mine, more);
  }
  return *this;
}

Amounts& Amounts::operator-=(const Amounts& part) {
  for (const Figure& f : kFigures) {
    std::uint64_t& mine = this->*f.of;
    if (!f.largest) mine -= std::min(mine, part.*f.of);
    if (f.largest && mine == part.*f.of) mine = 0;
  }
  return *this;
}

bool Amounts::saturated() const {
  return std::ranges::any_of(
      kFigures, [&](const Figure& f) { return !f.largest && this->*f.of == kSaturated; });
}

void Rows::push_back(const Row& row) {
  const RowKey* key = &text::kept<RowKey, HashOfKey>(static_cast<const RowKey&>(row));
  unsigned char packed[sizeof key + sizeof(Which) + std::size(kFigures) * 10];
  const auto figures = std::bit_cast<Figures>(row.amounts);
  Which which = 0;
  unsigned char* to = packed + sizeof key + sizeof which;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] == 0) continue;
    which |= Which{1} << i;
    std::uint64_t rest = figures[i];
    for (; rest > 127; rest >>= 7) *to++ = static_cast<unsigned char>(rest | 128);
    *to++ = static_cast<unsigned char>(rest);
  }
  std::memcpy(packed, &key, sizeof key);
  std::memcpy(packed + sizeof key, &which, sizeof which);
  // cppcheck-suppress danglingLifetime; they are copied
  bytes_.insert(bytes_.end(), packed, to);
}

void Rows::Iterator::read() {
  if (at_ == of_->bytes_.size()) return;
  const unsigned char* from = of_->bytes_.data() + at_;
  const RowKey* key = nullptr;
  Which which = 0;
  std::memcpy(&key, from, sizeof key);
  std::memcpy(&which, from + sizeof key, sizeof which);
  from += sizeof key + sizeof which;
  Figures figures{};
  for (; which != 0; which &= which - 1) {
    std::uint64_t& figure = figures[static_cast<std::size_t>(std::countr_zero(which))];
    for (unsigned shift = 0;; shift += 7) {
      figure |= static_cast<std::uint64_t>(*from & 127) << shift;
      if ((*from++ & 128) == 0) break;
    }
  }
  static_cast<RowKey&>(row_) = *key;
  row_.amounts = std::bit_cast<Amounts>(figures);
  next_ = static_cast<std::size_t>(from - of_->bytes_.data());
}

}  // namespace tprof::read
