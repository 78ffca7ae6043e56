// The calling thread's native frames, raw: the addresses that its calls return to.
//
// They come from libunwind (unwind.c), which keeps, for each thread, the rule that a library's
// tables have for an address: 256 KiB of memory, and 10 ns a frame. (glibc's backtrace(), by
// libgcc, asks the tables each time: 140 ns a frame. Before glibc 2.35, or in a libgcc built for
// such, it also takes a lock of the loader's, which a fork would copy.) A walk over addresses that
// are known takes no lock. It depends on no library, so it works with musl too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::native {

struct Stack {
  std::size_t frames = 0;
  bool cut = false;  // the stack goes on, but there was no room, or no rule for the next frame
};

// False: there is no thread-local key left, so walks find nothing.
bool begin();

// Fills `to`, innermost first, and leaves out this library's own frames at the inner end.
Stack walk(std::uintptr_t* to, std::size_t most);

// Has all threads forget their rules if a library was unloaded: they may be wrong for the next one
// at its addresses. False: nothing was unloaded since the last time.
bool forget_unloaded();

}  // namespace tprof::native
