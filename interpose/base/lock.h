#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "interpose/base/fork.h"
#include "interpose/base/futex.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock_order.h"

namespace tprof {

// Used in debug builds only.
inline thread_local constinit HeldLocks t_held_locks
    __attribute__((tls_model("initial-exec"))) = {};

[[gnu::cold]] inline void stop_at_wrong_order(const char* wanted, const char* held) {
  dprintf(STDERR_FILENO, "tprof: %s while the lock `%s` is held: see lock_order.h\n", wanted, held);
  __builtin_trap();
}
inline void check_no_lock_is_held() {
  if constexpr (kLocksAreChecked) {
    const char* held = t_held_locks.forbids(LockOrder{});
    if (held != nullptr) stop_at_wrong_order("another thread is waited for", held);
  }
}

// The only kind of lock, for the rare, short critical sections of bookkeeping; never on the path of
// a call that moves data. A thread that has to wait sleeps. Starting takes a millisecond: threads
// that yield to each other would keep every core busy for that time, and a real-time thread would
// never let the owner run.
//
// The lock holds the owner's process. A forked child takes over a lock that a thread of its parent
// held, since that thread can't release it there.
class Lock {
 public:
  // All zero if the order is not checked, so that a table with a lock takes no space in the
  // library's file.
  explicit constexpr Lock(LockOrder order) : order_(kLocksAreChecked ? order : LockOrder{}) {}

  void lock() { lock_until(UINT64_MAX); }
  // Returns false on a timeout.
  bool lock_until(std::uint64_t until_ns) {
    const KeepErrno keep_errno;
    check_order();
    const auto self = this_process();
    std::uint32_t mine = self;
    for (;;) {
      std::uint32_t seen = state_.load(std::memory_order_relaxed);
      if ((seen & ~kWaitedFor) != self) {
        if (state_.compare_exchange_weak(seen, mine, std::memory_order_acquire)) {
          if constexpr (kLocksAreChecked) t_held_locks.took(order_);
          return true;
        }
        continue;
      }
      const std::uint32_t waited_for = seen | kWaitedFor;
      if (seen != waited_for && !state_.compare_exchange_weak(seen, waited_for)) continue;
      mine = waited_for;  // others may be waiting, too
      if (!futex_sleep(state_, waited_for, until_ns)) return false;
    }
  }
  void unlock() {
    if constexpr (kLocksAreChecked) t_held_locks.gave_back(order_);
    if ((state_.exchange(0, std::memory_order_release) & kWaitedFor) == 0) return;
    futex_wake(state_, 1);
  }

  // True if a thread of the parent process had it when this process was forked.
  bool left_by_parent() const {
    const std::uint32_t owner = state_.load(std::memory_order_relaxed) & ~kWaitedFor;
    return owner != 0 && owner != this_process();
  }

 private:
  void check_order() const {
    if constexpr (kLocksAreChecked) {
      const char* held = t_held_locks.forbids(order_);
      if (held != nullptr) stop_at_wrong_order(kLockNames[static_cast<unsigned>(order_)], held);
    }
  }

  static constexpr std::uint32_t kWaitedFor = 1U << 31;
  const LockOrder order_;
  std::atomic<std::uint32_t> state_{0};  // the owner's process; 0: free
};

// Holds the lock, with cancellation and the program's signals held back.
class [[nodiscard]] LockGuard : NotCopied {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }

 private:
  HeldSignals held_;
  Lock& lock_;
};

}  // namespace tprof
