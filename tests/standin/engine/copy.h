// Every copy of every API, counted and carried out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "engine/stream.h"

namespace standin {

enum class Wait { kNo, kYes };

// `function` is a literal, the name that the program called.
cudaError_t copy(const char* function, const Region& region, cudaMemcpyKind kind,
                 cudaStream_t stream, Wait wait);
// The same as a node of a graph: `put` puts it there, by hand. It counts as captured.
cudaError_t place_copy(const char* function, const Region& region, cudaMemcpyKind kind,
                       const std::function<cudaError_t(Op)>& put);

// Several copies as one call: it counts once for each direction among them.
cudaError_t copy_batch(const char* function, const std::vector<Region>& regions,
                       cudaStream_t stream);
// Managed memory on its way: nothing to do, but it counts.
cudaError_t prefetch(const char* function, const void* pointer, size_t bytes, cudaStream_t stream);
cudaError_t prefetch_batch(const char* function, const void* const* pointers, const size_t* sizes,
                           size_t count, cudaStream_t stream);

cudaError_t fill(const Region& region, unsigned value, size_t value_size, cudaStream_t stream,
                 Wait wait);

}  // namespace standin
