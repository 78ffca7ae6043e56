// Finds by how much the clocks of two records of one rank's collectives differ. Each entry of one
// record encloses the call that the other one has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interpose/format/buckets.h"

namespace tprof::align {

struct Stay {
  Bucket kind = Bucket::ALLGATHER;
  std::uint64_t elements = 0;  // 0: not known
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct Shift {
  std::size_t pairs = 0;
  std::int64_t ns = 0;        // to be added to the outer times: the possible one nearest to 0
  std::int64_t least_ns = 0;  // the range of possible shifts
  std::int64_t most_ns = 0;
};

// Returns the constant shift with which each outer entry encloses one inner entry. They match in
// their order, by kind and elements, and no inner entry is left out in between.
// Inner entries come in stretches, each sorted by begin and without a gap. Unknown ones may lie
// between two stretches, before the first and after the last. If `whole`, there is one stretch and
// nothing else. Outer entries are sorted by begin.
// Returns nullopt if there is no such shift, or if it is ambiguous: another one is less than ten
// times as far from 0. The other one may also be a shift by which some or all outer entries match
// unknown ones. A shift of 0 is taken whatever else is possible.
std::optional<Shift> enclosing_shift(const std::vector<std::vector<Stay>>& inner,
                                     const std::vector<Stay>& outer, bool whole);

}  // namespace tprof::align
