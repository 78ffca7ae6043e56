// By how much the clock of one record of collectives is off against another's of the same rank,
// where each entry of the one encloses the call that the other one has.
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
  std::int64_t ns = 0;  // to be added to the outer ones' times: of all that do the nearest to 0
  std::int64_t least_ns = 0;  // all that do
  std::int64_t most_ns = 0;
};

// Inner ones in stretches, each by begin and without a gap: between two of them, before the first
// and behind the last there may be others that are not known, unless `whole`: then there is one
// stretch, and it is all there is. Outer ones by begin. The constant shift with which, in their
// order and by kind and elements, each outer one encloses one inner one, no inner one left out in
// between. Nothing where there is none, or where it is not clear which: another one is not ten
// times as far from 0, be it one by which the outer ones are, all or some, of those that are not
// known. A shift of 0 stands whatever else would do.
std::optional<Shift> enclosing_shift(const std::vector<std::vector<Stay>>& inner,
                                     const std::vector<Stay>& outer, bool whole);

}  // namespace tprof::align
