// Finds the difference of the clocks of two records of one rank's collectives. Each entry of the
// outer record encloses a call of the inner one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interpose/format/buckets.h"

namespace tprof::align {

struct Stay {
  Bucket kind = Bucket::ALLGATHER;
  std::uint64_t elements = 0;  // 0: unknown
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct Shift {
  std::size_t pairs = 0;
  std::int64_t ns = 0;        // to be added to outer times: the possible shift nearest to 0
  std::int64_t least_ns = 0;  // the range of possible shifts
  std::int64_t most_ns = 0;
};

// Returns the constant shift with which each outer entry encloses one inner entry. They match in
// order, by kind and elements, without skipping inner entries. Inner entries come in stretches,
// each sorted by begin and without gaps; unknown entries may be between stretches, before the first
// and after the last. If `whole`, there is one stretch and nothing unknown. Outer entries are
// sorted by begin. Returns nullopt if there is no such shift, or if it is ambiguous: another one,
// perhaps with unknown entries, is less than ten times as far from 0. A shift of 0 is always taken
// if possible.
std::optional<Shift> enclosing_shift(const std::vector<std::vector<Stay>>& inner,
                                     const std::vector<Stay>& outer, bool whole);

}  // namespace tprof::align
