// Guesses which name a misspelt one was meant to be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "interpose/format/settings.h"

namespace tprof {

// The number of characters to insert, delete, replace or swap with their neighbour to get from `a`
// to `b`. Only the beginning of long texts counts.
inline constexpr std::size_t kMaxEdited = 63;
constexpr std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = prefix(a, kMaxEdited);
  b = prefix(b, kMaxEdited);
  std::size_t rows[3][kMaxEdited + 1] = {};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t* row = rows[i % 3];
    const std::size_t* above = rows[(i + 2) % 3];
    const std::size_t* two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

// Returns the one of `names` that `name` may have been meant to be; empty if none is close. All
// have the same first `prefix` characters. `name_of` returns the name of an element.
template <typename Names, typename NameOf = std::identity>
constexpr std::string_view nearest(std::string_view name, const Names& names,
                                   std::size_t prefix = 0, NameOf name_of = {}) {
  std::string_view nearest;
  if (name.size() > kMaxEdited) return nearest;
  std::size_t least = SIZE_MAX;
  for (const auto& known : names) {
    const std::string_view other = std::invoke(name_of, known);
    const std::size_t distance = edit_distance(name, other);
    const std::size_t length = std::max(name.size(), other.size()) - prefix;
    if (distance < least && 2 * distance <= length) {
      least = distance;
      nearest = other;
    }
  }
  return nearest;
}

constexpr std::string_view nearest_setting(std::string_view name) {
  return nearest(name, kSettings, sizeof "TPROF_" - 1, &SettingInfo::name);
}

}  // namespace tprof
