#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "interpose/base/held_signals.h"

namespace tprof {

// For the rare, short critical sections of communicator and graph bookkeeping; never on the path
// of a call that moves data. Who does not get it in a few tries sleeps: starting takes a
// millisecond, in which threads that yield to each other would keep every core busy, and one of
// real-time priority would never let the owner go on.
class Lock {
 public:
  void lock() {
    constexpr int kTries = 64;
    for (int i = 0; i < kTries; ++i) {
      std::uint32_t free = kFree;
      if (state_.compare_exchange_weak(free, kTaken, std::memory_order_acquire)) return;
    }
    const int saved = errno;
    while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kWaitedFor, nullptr, nullptr, 0);
    }
    errno = saved;
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) {
      syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kTaken = 1;
  static constexpr std::uint32_t kWaitedFor = 2;
  std::atomic<std::uint32_t> state_{kFree};
};

// With cancellation and the program's signals held back.
template <typename L>
class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(L& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  HeldSignals held_;
  L& lock_;
};

}  // namespace tprof
