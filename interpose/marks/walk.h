// The calling thread's native frames, raw: the addresses that its calls return to.
//
// It works as libunwind does. The rule that a library's tables have for an address is looked up
// once and kept, so that a walk costs a few loads a frame, 10 ns. (glibc's backtrace(), by libgcc,
// asks the tables each time: 140 ns a frame. Before glibc 2.35, or in a libgcc built for such, it
// also takes a lock of the loader's, which a fork would copy.) The walk depends on no library, so
// it works with musl too. If all addresses are known it takes no lock. It allocates nothing, and
// reads nothing outside of the thread's own stack.
//
// libunwind is not linked in for the frames that have no rule here: it reads wherever the registers
// point, so a frame pointer that was overwritten ends the process, where this walk ends the stack.
// A test holds both against each other on PyTorch's stacks, where no frame is without a rule.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tprof::native {

struct Stack {
  std::size_t frames = 0;
  bool cut = false;  // the stack goes on, but there was no room, or no rule for the next frame
};

// Fills `to`, innermost first, and leaves out this library's own frames at the inner end.
Stack walk(std::uintptr_t* to, std::size_t most);

}  // namespace tprof::native
