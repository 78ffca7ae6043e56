// The calling thread's native frames: the return addresses of its calls.
//
// They come from libunwind (unwind.c), which caches, for each thread, the unwinding rules of
// addresses: 256 KiB of memory, and 10 ns per frame. (glibc's backtrace(), from libgcc, searches
// the tables each time: 140 ns per frame. Before glibc 2.35, or in a libgcc built for it, it also
// takes a lock of the loader, which a fork would copy.) A walk over known addresses takes no lock.
// It needs no library, so it works with musl, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::native {

struct Stack {
  std::size_t frames = 0;
  bool cut = false;  // the stack goes on, but there was no room, or no rule for the next frame
};

// Returns false if there is no thread-local key left: walks then find nothing.
bool begin();

// Fills `to`, innermost first, without this library's own innermost frames.
Stack walk(std::uintptr_t* to, std::size_t most);

// Makes all threads forget their rules if a library was unloaded: they may be wrong for the next
// one at its addresses. Returns false if nothing was unloaded since the last time.
bool forget_unloaded();

}  // namespace tprof::native
