// Guards for the calling thread: they keep its errno, and hold back cancellation and the program's
// signals.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "interpose/base/not_copied.h"

namespace tprof {

// Our own system calls within a program's calls must not change its errno.
class [[nodiscard]] KeepErrno : NotCopied {
 public:
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_ = errno;
};

// A program may cancel a thread in a call: at our open() or write(), or anywhere if asynchronously.
// A lock of ours or of the loader would never be released, and we must not turn a call into a
// cancellation point.
//
// The type is held, too: glibc 2.34 to 2.36 (sigcancel_handler) cancel a thread that was
// asynchronous when the signal was sent, even if it has disabled cancellation since.
struct Cancellation {
  int state = PTHREAD_CANCEL_ENABLE;
  int type = PTHREAD_CANCEL_DEFERRED;

  void hold() {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  }
  void let_go() const {
    pthread_setcancelstate(state, nullptr);
    pthread_setcanceltype(type,
                          nullptr);  // last: here every version acts on a pending cancellation
  }
};

class [[nodiscard]] NoCancel : NotCopied {
 public:
  NoCancel() { before_.hold(); }
  ~NoCancel() { before_.let_go(); }

 private:
  Cancellation before_;
};

// Used while a lock is held, or while the loader or malloc works for us: a signal handler of this
// thread that makes calls would wait for its own thread. The thread is not cancelled either. Keeps
// errno.
class [[nodiscard]] HeldSignals : NotCopied {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() {
    const KeepErrno keep_errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  NoCancel no_cancel_;  // first to begin, last to end: a pending cancellation then ends the thread
  sigset_t before_;
};

// Used for work that may raise `kSignal` in this thread: holds back all signals, and removes the
// one that we caused. Keeps errno.
template <int kSignal>
class [[nodiscard]] WithoutSignal : NotCopied {
 public:
  ~WithoutSignal() {
    if (was_pending_) return;
    const KeepErrno keep_errno;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, kSignal);
    const timespec now{};
    sigtimedwait(&ours, nullptr, &now);
  }

 private:
  static bool is_pending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, kSignal) == 1;
  }

  bool was_pending_ = is_pending();
  HeldSignals held_;
};

// Used for changes to files: writing past RLIMIT_FSIZE raises SIGXFSZ, and a sampling profiler's
// signal every millisecond makes fallocate fail with EINTR.
using NoSignals = WithoutSignal<SIGXFSZ>;

}  // namespace tprof
