// Tracks the program's allocations (TPROF_MEMORY=1): what each free releases, and how much memory
// each place has now and had at its peak.
//
// An allocation counts from the return of its call to the start of the call that frees it, so
// counted memory always exists. The peak is exact, or a lower bound if calls of several threads
// overlap. One lock is held for a map lookup, never across a CUDA call. A forked child takes it
// over (base/lock.h) and starts with nothing.
#pragma once

#include <cstdint>

#include "interpose/format/memory.h"

namespace tprof {
struct Head;
}

namespace tprof::allocations {

// The key of an entry: the address of memory, or the handle of physical memory (cuMemCreate).
std::uint64_t key_of(const void* at);
std::uint64_t key_of(std::uint64_t at);
std::uint64_t key_of_handle(std::uint64_t handle);

struct Entry {
  std::uint64_t bytes : 56;  // as requested
  std::uint64_t place : 8;
};
void allocated(std::uint64_t key, std::uint64_t bytes, std::uint8_t place);

// The entry that a free removes, to be put back if the free is refused; empty for unknown memory.
// Call take() before the real call: after it the address or handle may be in use again.
struct Taken {
  std::uint64_t key = 0;  // 0: empty
  Entry entry{};
};
Taken take(std::uint64_t key);
void put_back(const Taken& taken);

// Keeps the numbers in `head` from now on, until a fork.
void publish(Head& head);

void after_fork();  // in the child

}  // namespace tprof::allocations
