// All "device" memory is host memory that is registered here as device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace standin {

struct Allocation {
  void* base;
  size_t size;
  cudaMemoryType type;
  int device;
  size_t booked = 0;     // bytes counted in the books (memory_books.h)
  bool by_hand = false;  // mapped (blocks.h)
};

// Returns null if out of memory. The books count `asked` bytes if that is less than `size`.
void* allocate(size_t size, cudaMemoryType type, int device, size_t asked = SIZE_MAX);
bool release(void* base, cudaMemoryType type);  // false: no such allocation
void release_all(int device);                   // except registered or mapped memory
// Takes `base` off the books: a stream will release it when it gets there.
void let_go(void* base);
// Adds and removes memory that is mapped by hand (blocks.h).
void know(void* base, size_t size, cudaMemoryType type, int device);
void forget(void* base);
bool register_host(void* base, size_t size);  // false: it overlaps another
bool unregister_host(void* base);

// Returns the allocation that `pointer` lies in; none for ordinary host memory.
std::optional<Allocation> find_allocation(const void* pointer);
cudaMemoryType memory_type(const void* pointer);

size_t device_memory_total();
size_t device_memory_used(int device);

}  // namespace standin
