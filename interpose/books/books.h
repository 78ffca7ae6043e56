// Keeps books of what the program has allocated (TPROF_MEMORY=1). They tell what a free frees, and
// how much there is in each place now and was at most.
//
// An allocation enters when its call has returned, and leaves when the call that frees it begins:
// what is booked was there. If calls of several threads overlap, the peak is therefore a lower
// bound; otherwise it is exact. There is one lock, held for a look into a map and never across a
// CUDA call. A forked child takes it over (base/lock.h) and begins with empty books.
#pragma once

#include <cstdint>

#include "interpose/format/memory.h"

namespace tprof {
struct Head;
}

namespace tprof::books {

struct Entry {
  std::uint64_t bytes;  // as asked for
  std::uint64_t since;  // smaller for an older entry
  std::uint64_t block;  // what a handle or mapping holds; 0: not known
  std::uint32_t uses;   // of a handle; for a block: handles and mappings that hold it
  std::int16_t owner;   // device that was current; resetting it frees this
  std::uint8_t place;
};

// Enters `bytes` at `at`; a null address is ignored. `device` was the current one.
void allocated(const void* at, std::uint64_t bytes, std::uint8_t place, int device);

// The entry that a free takes out, to be put back if the free is refused. It is nothing for null,
// and for what is not in the books.
struct Taken {
  std::uint64_t key = 0;  // 0: nothing
  Entry entry{};
};
Taken take(const void* at);
void put_back(const Taken& taken);

// All that was allocated while `device` was current, except physical memory, is gone with its
// context.
void device_was_reset(int device);

// Physical memory (cuMemCreate), which is there until its last handle is released and its last
// mapping gone.
void created(std::uint64_t handle, std::uint64_t bytes, std::uint8_t place);
// cuMemRetainAllocationHandle gave `handle` for what is mapped at `address`.
void retained(std::uint64_t handle, std::uint64_t address);
// Call release() before the real call, since the handle may be given to someone else after it.
struct Released {
  std::uint64_t handle = 0;
  Entry of_handle{};
  std::uint64_t block = 0;  // 0: nothing was known of it
  Entry of_block{};         // as it was
};
Released release(std::uint64_t handle);
void put_back(const Released& released);
// A mapping holds its block from before the real call on. If the call is refused, not_mapped()
// drops that.
std::uint64_t about_to_map(std::uint64_t handle);  // returns the block
void mapped(std::uint64_t block, std::uint64_t address, std::uint64_t bytes);
void not_mapped(std::uint64_t block);
// unmapped() drops what is mapped in a range and was so at `before`, which now() gave.
std::uint64_t now();
void unmapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t before);

// From now on the numbers are in `head`, which stays until a fork.
void publish(Head& head);

void after_fork();  // in the child

}  // namespace tprof::books
