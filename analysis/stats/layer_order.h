// Finds one order for what passes gather or reduce, and the place in it of each of their calls.
// Only their sizes tell calls apart. If several places have one size, their order decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tprof::stats {

using Sizes = std::vector<std::uint64_t>;  // of the calls of a pass, in their order

// Returns the place of each of `part` in `whole`. Nullopt if it is not a part of it, or in several
// ways.
std::optional<std::vector<std::size_t>> places_in(const Sizes& part, const Sizes& whole);

// Returns the order of which most passes are a part, and the shortest of several. `times` tells how
// often each order was seen.
Sizes common_order(const std::map<Sizes, std::size_t>& times);

// Returns the place of each call of a backward pass in the order of the forward pass; nullopt if
// not known. A size that is there once tells its place. Calls of sizes that are there several times
// must come as often as there, and in reverse.
std::vector<std::optional<std::size_t>> places_in_reverse(const Sizes& calls, const Sizes& forward);

}  // namespace tprof::stats
