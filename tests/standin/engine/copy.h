// Counts and carries out the copies of all APIs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "engine/stream.h"

namespace standin {

enum class Wait { kNo, kYes };

// `function` is a literal, the name that the program called.
cudaError_t copy(const char* function, const Region& region, cudaMemcpyKind kind,
                 cudaStream_t stream, Wait wait);
// Makes a copy that `put` adds to a graph by hand. It counts as captured.
cudaError_t place_copy(const char* function, const Region& region, cudaMemcpyKind kind,
                       const std::function<cudaError_t(Op)>& put);

// Carries out several copies as one call, which counts once for each direction among them.
cudaError_t copy_batch(const char* function, const std::vector<Region>& regions,
                       cudaStream_t stream);
// Prefetches of managed memory have nothing to do here, but they count.

cudaError_t fill(const Region& region, unsigned value, size_t value_size, cudaStream_t stream,
                 Wait wait);

}  // namespace standin
