// The calling thread's native frames, raw: the addresses that its calls return to.
//
// As libunwind does it: what the tables of a library say of an address is looked up once and kept,
// so that a walk costs a few loads a frame, 10 ns. (glibc's backtrace(), by libgcc, asks the tables
// each time: 140 ns a frame, and a lock of the loader's before glibc 2.35 or in a libgcc built for
// such, which a fork would copy. libunwind is on few machines.) It depends on no library, so it is
// there with musl too. Where all addresses were met before it takes no lock; it allocates nothing,
// and reads nothing outside of the thread's own stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::native {

struct Stack {
  std::size_t frames = 0;
  bool cut = false;  // it went on, for more frames than there was room for, or none knows how
};

// Innermost first, without those of this library at the inner end.
Stack walk(std::uintptr_t* to, std::size_t most);

}  // namespace tprof::native
