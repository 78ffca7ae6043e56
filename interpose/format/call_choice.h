// The syntax of TPROF_OPS and TPROF_SIZES, and of the tool's --ops and --sizes: they select calls
// by operation and by size. Usable inside the traced process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"

namespace tprof {

constexpr char lower_case(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// `*` matches any text. Case does not matter.
inline bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  const std::string_view rest = without_prefix(pattern, 1);
  if (pattern[0] == '*') {
    return matches(rest, name) || (!name.empty() && matches(pattern, without_prefix(name, 1)));
  }
  return !name.empty() && lower_case(pattern[0]) == lower_case(name[0]) &&
         matches(rest, without_prefix(name, 1));
}

// Reads "a-b", "a-", "-b" or "a" with parse(text, number). Returns false for anything else.
template <typename Number, typename Parse>
bool parse_borders(std::string_view item, Number& least, Number& most, const Parse& parse) {
  const std::size_t dash = std::min(item.find('-'), item.size());
  const std::string_view from = prefix(item, dash);
  const std::string_view to = dash == item.size() ? from : without_prefix(item, dash + 1);
  return !(from.empty() && to.empty()) && (from.empty() || parse(from, least)) &&
         (to.empty() || parse(to, most)) && least <= most;
}

// Bytes of one call, both included.
struct Sizes {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  bool holds(std::uint64_t bytes) const { return least <= bytes && bytes <= most; }
};

}  // namespace tprof
