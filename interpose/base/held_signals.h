// Holding back what comes to a thread from outside: cancellation, the program's signals.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace tprof {

// A program may cancel a thread that is in a call: at any of our open() and write(), asynchronously
// anywhere. What the thread holds, a lock of ours or the loader's, nobody would give back. And a
// call that is no cancellation point is none with us in it.
class [[nodiscard]] NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// While a lock is held, or the loader or malloc is at work for us: a signal handler of this thread
// that makes calls of its own would wait for what its own thread has. Nor is the thread
// cancelled. Keeps errno.
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
  NoCancel no_cancel_;  // first to begin, last to end: cancelling goes on to the thread's end
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
