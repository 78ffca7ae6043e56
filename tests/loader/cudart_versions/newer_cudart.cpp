// A CUDA runtime that has the functions of newer.h and remembers their arguments: a wrapper that
// lost one would show. Built under two sonames, one of which no version has yet.
#include "newer.h"

namespace {

unsigned long long g_sum;

template <typename T>
unsigned long long word(T argument) {
  return reinterpret_cast<unsigned long long>(argument);
}

}  // namespace

extern "C" {

unsigned long long last_arguments() {
  return g_sum;
}
cudaError_t copies(void* const*, const void* const*, const size_t* sizes, size_t count,
                   cudaMemcpyAttributes* attributes, size_t* indices, size_t attributes_count,
                   cudaStream_t stream) {
  g_sum += sizes[0] + count + word(attributes) + word(indices) + attributes_count + word(stream);
  return cudaSuccess;
}
cudaError_t prefetch(const void*, size_t size, cudaMemLocation location, unsigned flags,
                     cudaStream_t stream) {
  g_sum += size + static_cast<unsigned>(location.type) * 10 + static_cast<unsigned>(location.id) +
           flags + word(stream);
  return cudaSuccess;
}
cudaError_t nine(void*, size_t b, size_t c, const void*, size_t e, size_t f, size_t g, size_t h,
                 int i) {
  g_sum += b + c + e + f + g + h + static_cast<unsigned>(i);
  return cudaSuccess;
}

}  // extern "C"
