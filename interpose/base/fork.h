// Handlers of forks, and memory that the kernel wipes in the child.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// glibc's pthread_atfork, which is linked in, calls this function. It is weak: see oldest_glibc.h.
extern "C" {
[[gnu::visibility("hidden")]] extern void* __dso_handle;
[[gnu::weak]] int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                    void* object);
}

namespace tprof {

inline void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  if (__register_atfork != nullptr) {
    __register_atfork(before, in_parent, in_child, &__dso_handle);
  }
}

// The largest page of memory that a kernel of this machine may have. x86-64 has pages of 4 KiB.
// Kernels for aarch64 have pages of 4, 16 or 64 KiB, which is known only where they run.
#if defined(__x86_64__)
inline constexpr std::size_t kLargestPage = 4096;
#else
inline constexpr std::size_t kLargestPage = 65536;
#endif

// The kernel wipes this in a forked child (MADV_WIPEONFORK), even after a bare clone(), which fork
// handlers miss: the child must not write into its parent's files. It has a page of its own.
struct alignas(kLargestPage) WipedByFork {
  std::atomic<std::uint32_t> session;  // its number; 0: not begun in this process
  std::atomic<std::uint32_t> begun;    // a thread is assigning the number
  // Its pid. 0: ask the kernel; always if the kernel can't wipe.
  std::atomic<std::uint32_t> process;
};
inline constinit WipedByFork g_wiped_by_fork{};

// getpid() without a system call, once a session has begun.
inline std::uint32_t this_process() {
  const std::uint32_t known = g_wiped_by_fork.process.load(std::memory_order_relaxed);
  return known != 0 ? known : static_cast<std::uint32_t>(getpid());
}

}  // namespace tprof
