// The books of what the program has allocated (TPROF_MEMORY=1): which memory is whose, so that a
// free is known for what it frees, and how much there is of each place now and was at most.
//
// An allocation enters when its call has returned, and leaves when the call that frees it begins:
// what is booked was there. Of calls of several threads that overlap the peak is therefore a lower
// bound; of others it is exact. One lock, held for a look into a map and never across a call of
// CUDA's; a child that is forked takes it over (base/lock.h) and begins with empty books.
#pragma once

#include <cstdint>

#include "interpose/format/memory.h"

namespace tprof {
struct Head;
}

namespace tprof::books {

// Handles and addresses are numbers, of one kind each: a CUDA array's handle may be any address.
enum class What : std::uint8_t { memory, array };

struct Entry {
  std::uint64_t bytes;  // that were asked for
  std::uint64_t since;  // the older, the smaller
  std::uint64_t block;  // of handles and mappings: what they hold, 0: not known
  std::uint32_t uses;   // of a handle; of a block: handles and mappings that hold it
  std::int16_t owner;   // device that was current: what resetting it frees
  std::uint8_t place;
};

// `bytes` at `at`, a null address or handle is nothing. `device`: that was current.
void allocated(What what, const void* at, std::uint64_t bytes, std::uint8_t place, int device);

// What a free takes out, to be put back if it is refused. Null, or not in the books: nothing.
struct Taken {
  std::uint64_t key = 0;  // 0: nothing
  Entry entry{};
};
Taken take(What what, const void* at);
void put_back(const Taken& taken);

// All that was allocated while `device` was current, but physical memory, is gone with its context.
void device_was_reset(int device);

// Physical memory (cuMemCreate), which is there until its last handle is released and its last
// mapping gone.
void created(std::uint64_t handle, std::uint64_t bytes, std::uint8_t place);
// cuMemRetainAllocationHandle gave `handle` for what is mapped at `address`.
void retained(std::uint64_t handle, std::uint64_t address);
// Before the call, since the handle may be given to someone else after it.
struct Released {
  std::uint64_t handle = 0;
  Entry of_handle{};
  std::uint64_t block = 0;  // 0: nothing was known of it
  Entry of_block{};         // as it was
};
Released release(std::uint64_t handle);
void put_back(const Released& released);
// The mapping holds its block from before the call on; not if it is refused.
std::uint64_t about_to_map(std::uint64_t handle);  // the block
void mapped(std::uint64_t block, std::uint64_t address, std::uint64_t bytes);
void not_mapped(std::uint64_t block);
// What is mapped in a range, and was so at `before`.
std::uint64_t now();
void unmapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t before);

// From now on the numbers are in `head`, which stays until a fork.
void publish(Head& head);

void after_fork();  // in the child

}  // namespace tprof::books
