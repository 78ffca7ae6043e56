// Waiting for a word of memory. Every wait and wake of the library is one of these.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "interpose/base/clock.h"

namespace tprof {

// Sleeps while `word` is `value`, until a thread wakes us. Returns false if `until_ns` has passed;
// UINT64_MAX: never.
inline bool futex_sleep(std::atomic<std::uint32_t>& word, std::uint32_t value,
                        std::uint64_t until_ns = UINT64_MAX) {
  const bool for_ever = until_ns == UINT64_MAX;
  const std::uint64_t now = for_ever ? 0 : now_ns();
  if (now >= until_ns) return false;
  const timespec timeout{static_cast<time_t>((until_ns - now) / 1'000'000'000),
                         static_cast<long>((until_ns - now) % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, for_ever ? nullptr : &timeout, nullptr, 0);
  return true;
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int threads = INT_MAX) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace tprof
