// Keeps count of what the program has allocated (TPROF_MEMORY=1). They tell what a free frees, and
// how much there is in each place now and was at most.
//
// An allocation enters when its call has returned, and leaves when the call that frees it begins:
// what is counted was there. If calls of several threads overlap, the peak is therefore a lower
// bound; otherwise it is exact. There is one lock, held for a look into a map and never across a
// CUDA call. A forked child takes it over (base/lock.h) and begins with nothing.
#pragma once

#include <cstdint>

#include "interpose/format/memory.h"

namespace tprof {
struct Head;
}

namespace tprof::allocations {

// An entry has the address of memory, or the handle of physical memory (cuMemCreate), for its key.
std::uint64_t key_of(const void* at);
std::uint64_t key_of(std::uint64_t at);
std::uint64_t key_of_handle(std::uint64_t handle);

struct Entry {
  std::uint64_t bytes : 56;  // as asked for
  std::uint64_t place : 8;
};
void allocated(std::uint64_t key, std::uint64_t bytes, std::uint8_t place);

// The entry that a free takes out, to be put back if the free is refused. It is nothing for what is
// not known. Call take() before the real call, since the address or handle may be given to
// someone else after it.
struct Taken {
  std::uint64_t key = 0;  // 0: nothing
  Entry entry{};
};
Taken take(std::uint64_t key);
void put_back(const Taken& taken);

// From now on the numbers are in `head`, which stays until a fork.
void publish(Head& head);

void after_fork();  // in the child

}  // namespace tprof::allocations
