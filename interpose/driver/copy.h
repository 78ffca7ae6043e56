// The direction of a copy.
#pragma once

#include <iterator>

#include "interpose/driver/copy_args.h"
#include "interpose/driver/memory.h"
#include "interpose/format/buckets.h"

namespace tprof {

// By its kind; of a cudaMemcpyDefault asked of the driver, as CUDA's unified addressing does.
[[gnu::always_inline]] inline Bucket bucket_of(const CopyArgs& a) {
  static constexpr Bucket kDirections[] = {Bucket::H2H, Bucket::H2D, Bucket::D2H, Bucket::D2D};
  const auto kind = static_cast<unsigned>(a.kind);
  return kind < std::size(kDirections) ? kDirections[kind] : driver::direction(a.dst, a.src);
}

}  // namespace tprof
