// All "device" memory is host memory; what makes it device memory is that we remember it here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>

namespace standin {

struct Allocation {
  void* base;
  size_t size;
  cudaMemoryType type;
  int device;
};

void* allocate(size_t size, cudaMemoryType type, int device);  // null: out of memory
bool release(void* base, cudaMemoryType type);                 // false: not such an allocation
bool register_host(void* base, size_t size);                   // false: overlaps
bool unregister_host(void* base);

// The allocation that `pointer` lies in; none for ordinary host memory.
std::optional<Allocation> find_allocation(const void* pointer);
cudaMemoryType memory_type(const void* pointer);

size_t device_memory_total();
size_t device_memory_used(int device);

}  // namespace standin
