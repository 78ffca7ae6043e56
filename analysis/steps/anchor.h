// Finds the reduction by which the steps of a rank are counted.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "steps/order.h"

namespace tprof::steps {

// Occurrences of one reduction, told apart from others of its kind by what came before it.
struct Anchor {
  std::vector<std::size_t> at;
  std::size_t unit = 0;   // index into `at`: from it to the next is the usual sequence
  std::size_t alike = 0;  // how often that sequence is between two occurrences
  std::size_t from() const { return at[unit] + 1; }
  std::size_t to() const { return at[unit + 1]; }
};

// Returns the last reduction of a period; nullopt if nothing repeats.
std::optional<Anchor> find_anchor(const Order& text);

}  // namespace tprof::steps
