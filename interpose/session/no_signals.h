// Holding the program's signals back.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace tprof {

// While a lock is held, or the loader or malloc is at work for us: a signal handler of this thread
// that makes calls of its own would wait for what its own thread has. Keeps errno.
class [[nodiscard]] HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() {
    const int saved = errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// While we change files. Writing past RLIMIT_FSIZE raises SIGXFSZ in the thread that writes, and a
// signal that the program takes every millisecond (a sampling profiler's) makes fallocate give up
// with EINTR. Holds all signals back, and takes away the one that we caused. Keeps errno.
class [[nodiscard]] NoSignals {
 public:
  NoSignals() = default;
  ~NoSignals() {
    if (was_pending_) return;
    const int saved = errno;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGXFSZ);
    const timespec now{};
    sigtimedwait(&ours, nullptr, &now);
    errno = saved;
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
  }

  bool was_pending_ = is_pending();
  HeldSignals held_;
};

}  // namespace tprof
