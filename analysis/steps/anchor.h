// The reduction that the steps of a rank are counted by.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "steps/order.h"

namespace tprof::steps {

// Occurrences of one reduction, told from others of its kind by what stood before it.
struct Anchor {
  std::vector<std::size_t> at;
  std::size_t unit = 0;  // index into `at`: what follows it up to the next is what mostly does
  std::size_t from() const { return at[unit] + 1; }
  std::size_t to() const { return at[unit + 1]; }
};

// The last reduction of a period; nothing where nothing repeats.
std::optional<Anchor> find_anchor(const Order& text);

}  // namespace tprof::steps
