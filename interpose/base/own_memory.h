// The library's own memory, without the heap, so usable inside the traced process. It works even if
// the process can map no more (RLIMIT_AS, RLIMIT_DATA, vm.max_map_count).
//
// Its addresses are reserved as one mapping, before the process has used them up. Memory is given
// out from one end of it, so the kernel needs no further mapping. The first part is writable from
// the start, and needs only pages from the kernel.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "interpose/base/largest_page.h"
#include "interpose/base/lock.h"

namespace tprof {

// Reserves `most` bytes, or a `part` of RLIMIT_AS if that is less, but at least `least`: the limit
// counts reserved addresses, and the program needs them. Returns null if there are not that many.
inline std::byte* reserve_addresses(std::uint64_t most, std::uint64_t least, std::uint64_t part,
                                    std::uint64_t& size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
  for (size = most; size >= least; size /= 4) {
    if (size > limit.rlim_cur / part) continue;
    void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return static_cast<std::byte*>(at);
  }
  return nullptr;
}

// The part of reserved addresses that is in use.
struct Reserve {
  std::byte* next = nullptr;      // free from here on
  std::byte* writable = nullptr;  // up to here
  std::byte* end = nullptr;

  // Returns null if no addresses or no memory are left.
  std::byte* take(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(end - next)) return nullptr;
    if (next + bytes > writable && !make_writable(next + bytes)) return nullptr;
    std::byte* const at = next;
    next += bytes;
    return at;
  }
  bool make_writable(std::byte* until) {
    const auto more = static_cast<std::size_t>(until - writable);
    if (mprotect(writable, more, PROT_READ | PROT_WRITE) != 0) return false;
    writable = until;
    return true;
  }
};

struct OwnMemory {
  static constexpr std::uint64_t kReserved = std::uint64_t{1} << 30;
  static constexpr std::uint64_t kAtOnce = std::uint64_t{16} << 20;

  Lock lock{LockOrder::memory};
  bool tried = false;
  std::byte* begin = nullptr;
  Reserve rest;
  void* given_back[64] = {};  // free blocks of 2^n bytes, as linked lists

  bool has(const void* at) const { return at >= begin && at < rest.end; }
  void reserve() {
    tried = true;
    std::uint64_t size = 0;
    begin = reserve_addresses(kReserved, kAtOnce, 16, size);
    if (begin == nullptr) return;
    rest = {begin, begin, begin + size};
    rest.make_writable(begin + kAtOnce);
  }
};
inline constinit OwnMemory g_own_memory{};

inline std::size_t block_size(std::size_t bytes) {
  return std::bit_ceil(bytes < kLargestPage ? kLargestPage : bytes);
}

// Returns zeroed pages, or null if there is no memory.
inline void* take_memory(std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  {
    OwnMemory& own = g_own_memory;
    const LockGuard guard(own.lock);
    if (!own.tried) own.reserve();
    void*& block = own.given_back[std::countr_zero(size) % 64];
    if (void* const at = block) {
      std::memcpy(&block, at, sizeof block);
      std::memset(at, 0, sizeof block);
      return at;
    }
    if (void* const at = own.rest.take(size)) return at;
  }
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

inline void give_back_memory(void* at, std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  OwnMemory& own = g_own_memory;
  if (!own.has(at)) {
    munmap(at, size);
    return;
  }
  // Pages that the program has locked in memory stay.
  if (madvise(at, size, MADV_DONTNEED) != 0) std::memset(at, 0, size);
  const LockGuard guard(own.lock);
  void*& block = own.given_back[std::countr_zero(size) % 64];
  std::memcpy(at, &block, sizeof block);
  block = at;
}

// Returns a larger block with the smaller one's contents, and frees the smaller one; null, and the
// smaller one stays, if there is no memory.
inline void* grow_memory(void* at, std::size_t bytes, std::size_t more) {
  void* larger = take_memory(more);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, at, bytes);
  give_back_memory(at, bytes);
  return larger;
}

// Returns a new T that is never destroyed: exit() would destroy a static object while we still need
// it. Null: there is no memory.
template <typename T>
T* make_in_own_memory() {
  void* at = take_memory(sizeof(T));
  return at == nullptr ? nullptr : new (at) T;
}

}  // namespace tprof
