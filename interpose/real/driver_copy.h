// The direction of a copy.
#pragma once

#include <iterator>

#include "interpose/format/buckets.h"
#include "interpose/real/driver_copy_args.h"
#include "interpose/real/driver_memory.h"

namespace tprof {

// Directions that the caller names. For the others we ask the driver, as CUDA's unified addressing
// does (cudaMemcpyDefault).
inline constexpr Bucket kDirections[] = {Bucket::H2H, Bucket::H2D, Bucket::D2H, Bucket::D2D};
constexpr bool is_named(cudaMemcpyKind kind) {
  return static_cast<unsigned>(kind) < std::size(kDirections);
}
inline Bucket bucket_of(const CopyArgs& a) {
  return is_named(a.kind) ? kDirections[a.kind] : driver::direction(a.dst, a.src).bucket;
}

}  // namespace tprof
