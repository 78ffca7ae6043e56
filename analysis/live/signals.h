// Waits in a command that goes on until it is told to end. wait() reports signals, between two
// pieces of work, so that a terminal is put back and a line is whole.
#pragma once

#include <chrono>
#include <csignal>

namespace tprof::live {

enum class Woken { time, input, resized, end };

class Signals {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH from here on, also in threads that are
  // started later.
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // Also wakes up if there is something to read from `fd`, or it is gone. -1: there is none.
  Woken wait(std::chrono::nanoseconds most, int fd = -1);

  // Returns the signal that ended it, or 0 if none did.
  int ended_by() const { return ended_by_; }
  // The signal mask as it was before, for what a child has to inherit.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  int fd_ = -1;
  int ended_by_ = 0;
};

}  // namespace tprof::live
