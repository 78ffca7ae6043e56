// Holding the program's signals back while we change files.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace tprof {

// Writing past RLIMIT_FSIZE raises SIGXFSZ in the thread that writes, and a signal that the program
// takes every millisecond (a sampling profiler's) makes fallocate give up with EINTR. Holds all
// signals back, and takes away the one that we caused. Keeps errno.
class [[nodiscard]] NoSignals {
 public:
  NoSignals() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() {
    const int saved = errno;
    if (!was_pending_) {
      sigset_t ours;
      sigemptyset(&ours);
      sigaddset(&ours, SIGXFSZ);
      const timespec now{};
      sigtimedwait(&ours, nullptr, &now);
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

}  // namespace tprof
