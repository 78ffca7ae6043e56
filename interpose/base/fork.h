// Memory that the kernel wipes in the child of a fork.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/largest_page.h"

namespace tprof {

// The kernel wipes this in a forked child (MADV_WIPEONFORK), even after a bare clone(), which fork
// handlers miss: the child must not write into its parent's files. It has a page of its own.
struct alignas(kLargestPage) WipedByFork {
  std::atomic<std::uint32_t> session;  // its number; 0: not begun in this process
  std::atomic<std::uint32_t> begun;    // a thread is assigning the number
  std::atomic<std::uint32_t>
      process;  // its pid; 0: ask the kernel; always 0 if the kernel can't wipe
};
inline constinit WipedByFork g_wiped_by_fork{};

// getpid() without a system call, once a session has begun.
inline std::uint32_t this_process() {
  const std::uint32_t known = g_wiped_by_fork.process.load(std::memory_order_relaxed);
  return known != 0 ? known : static_cast<std::uint32_t>(getpid());
}

}  // namespace tprof
