// The totals of the program's scopes (user/tprof.h), exact even for scopes without a line. They are
// rows of kMetaScope in the ledgers of the threads that end the scopes, one for each scope and bin
// of durations.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "interpose/format/ledger.h"
#include "interpose/format/ranges.h"
#include "interpose/format/record.h"

namespace tprof {

// Scopes with totals of their own, by name and category; all others share one more entry.
inline constexpr std::uint32_t kMaxScopes = 1024;
inline constexpr std::string_view kOtherScopes = "(other names)";

struct ScopeName {
  std::uint32_t category;  // its number in the domain kScopeDomain, 0: none
  std::uint32_t length;
  char text[kMaxRangeName];

  std::string_view view() const { return {text, length < kMaxRangeName ? length : kMaxRangeName}; }
};

// A bin is a quarter of an octave; below 4 ns it is one nanosecond.
constexpr std::uint8_t scope_bin(std::uint64_t ns) {
  if (ns < 4) return static_cast<std::uint8_t>(ns);
  const auto octave = static_cast<unsigned>(std::bit_width(ns)) - 1;
  return static_cast<std::uint8_t>(4 * (octave - 1) + (ns >> (octave - 2) & 3));
}
// The shortest duration of a bin.
constexpr std::uint64_t scope_bin_from(unsigned bin) {
  return bin < 4 ? bin : std::uint64_t{4 + (bin & 3)} << (bin / 4 - 1);
}
inline constexpr std::uint64_t kLongestScope = (std::uint64_t{1} << 48) - 1;
static_assert(scope_bin(kLongestScope) == 187 && scope_bin(7) == 7 && scope_bin(8) == 8);
static_assert(scope_bin_from(8) == 8 && scope_bin_from(9) == 10 && scope_bin_from(12) == 16);
static_assert(scope_bin(scope_bin_from(187)) == 187 && scope_bin(scope_bin_from(187) - 1) == 186);

// The kinds of a scope's rows; their `bytes_class` is the bin. times: `calls` and `host_ns` are the
// number of closed scopes and their time, and `failed` is the number left by an exception. amounts:
// `count` and `host_ns` are the elements and bytes given, if any. unbinned: times of scopes that
// found no row of their own.
enum class ScopeRow : std::uint8_t { times, amounts, unbinned };
constexpr LedgerKey::Words scope_key(std::uint32_t scope, ScopeRow row, std::uint8_t bin) {
  return key_words(kMetaScope, Bucket{}, static_cast<std::uint8_t>(row), Mode::direct,
                   static_cast<std::int8_t>(bin), scope, 0);
}

}  // namespace tprof
