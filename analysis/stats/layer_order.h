// One order for what passes gather or reduce, and the place in it of each of their calls. Calls are
// told apart by their sizes alone; where several places have one size their order decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tprof::stats {

using Sizes = std::vector<std::uint64_t>;  // of the calls of a pass, in their order

// Where each of `part` stands in `whole`: nothing where it is no part of it, or in several ways.
std::optional<std::vector<std::size_t>> places_in(const Sizes& part, const Sizes& whole);

// Of the orders of passes, with how often each was seen, that of which most are a part; of several
// the shortest.
Sizes common_order(const std::map<Sizes, std::size_t>& times);

// Where each call of a backward pass stands in the order of the forward pass. A size that is there
// once tells its place; of sizes that are there several times each must come as often as there, and
// in reverse. Nothing: not told.
std::vector<std::optional<std::size_t>> places_in_reverse(const Sizes& calls, const Sizes& forward);

}  // namespace tprof::stats
