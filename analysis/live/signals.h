// Waiting, of a command that goes on until it is told to end: signals come as an answer, between
// two pieces of work, so that a terminal is put back and a line is whole.
#pragma once

#include <chrono>
#include <csignal>

namespace tprof::live {

enum class Woken { time, input, resized, end };

class Signals {
 public:
  // SIGINT, SIGTERM, SIGHUP and SIGQUIT are held from here on, in threads that are started later
  // too.
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // `fd`: whether there is something to read there, or it is gone; -1: nothing to look at.
  Woken wait(std::chrono::nanoseconds most, int fd = -1);

  // The signal that ended it; 0: none did.
  int ended_by() const { return ended_by_; }
  // As before: for what a child has to inherit.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  int fd_ = -1;
  int ended_by_ = 0;
};

}  // namespace tprof::live
