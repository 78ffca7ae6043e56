// All "device" memory is host memory; what makes it device memory is that we remember it here.
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
  size_t booked = 0;     // in the memory's books (memory_books.h)
  bool by_hand = false;  // mapped: blocks.h
};

// Null: out of memory. `asked`: what the books say, where that is less.
void* allocate(size_t size, cudaMemoryType type, int device, size_t asked = SIZE_MAX);
bool release(void* base, cudaMemoryType type);  // false: not such an allocation
void release_all(int device);                   // but what was registered, or mapped by hand
// It is to be released when a stream gets there, and is the program's no longer.
void let_go(void* base);
// Memory that is mapped by hand (blocks.h).
void know(void* base, size_t size, cudaMemoryType type, int device);
void forget(void* base);
bool register_host(void* base, size_t size);  // false: overlaps
bool unregister_host(void* base);

// The allocation that `pointer` lies in; none for ordinary host memory.
std::optional<Allocation> find_allocation(const void* pointer);
cudaMemoryType memory_type(const void* pointer);

size_t device_memory_total();
size_t device_memory_used(int device);

}  // namespace standin
