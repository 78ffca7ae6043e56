// The library's own memory, without the heap, so usable inside the traced process.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace tprof {

// Returns zeroed pages, or null if there is no memory.
inline void* take_memory(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

inline void give_back_memory(void* at, std::size_t bytes) {
  munmap(at, bytes);
}

// Returns a larger block with the smaller one's contents, and frees the smaller one; null, and the
// smaller one stays, if there is no memory.
inline void* grow_memory(void* at, std::size_t bytes, std::size_t more) {
  void* larger = mremap(at, bytes, more, MREMAP_MAYMOVE);
  return larger == MAP_FAILED ? nullptr : larger;
}

// Returns a new T that is never destroyed: exit() would destroy a static object while we still need
// it. Null: there is no memory.
template <typename T>
T* make_in_own_memory() {
  void* at = take_memory(sizeof(T));
  return at == nullptr ? nullptr : new (at) T;
}

}  // namespace tprof
