// Memory that the kernel wipes in the child of a fork.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/largest_page.h"

namespace tprof {

// The kernel wipes this in a forked child (MADV_WIPEONFORK), even after a bare clone(), which the
// handlers would miss: such a child must not write into its parent's files. It has a page of its
// own.
struct alignas(kLargestPage) WipedByFork {
  std::atomic<std::uint32_t> session;  // its number; 0: none has begun in this process
  std::atomic<std::uint32_t> begun;    // a thread is giving it its number
  std::atomic<std::uint32_t> process;  // 0: ask for it; always 0 where the kernel wipes nothing
};
inline constinit WipedByFork g_wiped_by_fork{};

// getpid() without a system call, once a session has begun.
inline std::uint32_t this_process() {
  const std::uint32_t known = g_wiped_by_fork.process.load(std::memory_order_relaxed);
  return known != 0 ? known : static_cast<std::uint32_t>(getpid());
}

}  // namespace tprof
