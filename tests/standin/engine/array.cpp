#include "engine/array.h"

#include <algorithm>

#include "engine/memory.h"

namespace standin {

cudaArray_t make_array(const cudaChannelFormatDesc& format, const cudaExtent& extent,
                       unsigned flags, int device) {
  auto* array = new cudaArray{nullptr, extent, format, flags};
  const size_t size = array->slice() * std::max<size_t>(extent.depth, 1);
  array->base = static_cast<char*>(allocate(size, cudaMemoryTypeDevice, device));
  if (array->base) return array;
  delete array;
  return nullptr;
}

void free_array(cudaArray_t array) {
  release(array->base, cudaMemoryTypeDevice);
  delete array;
}

}  // namespace standin
