// CUDA arrays: device memory that knows the format of its elements, row after row.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

struct cudaArray {
  char* base;
  cudaExtent extent;  // as given; 0 for a missing dimension
  cudaChannelFormatDesc format;
  unsigned flags;

  size_t element() const {
    return static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
  }
  size_t pitch() const { return extent.width * element(); }
  size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  size_t slice() const { return pitch() * rows(); }
};

namespace standin {

cudaArray_t make_array(const cudaChannelFormatDesc& format, const cudaExtent& extent,
                       unsigned flags, int device);  // null: out of memory
void free_array(cudaArray_t array);

}  // namespace standin
