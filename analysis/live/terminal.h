// The screen of a live view: plain ANSI escapes on the alternate screen. It is put back however the
// view ends.
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>

#include "interpose/base/not_copied.h"

namespace tprof::live {

class Terminal : NotCopied {
 public:
  Terminal();
  ~Terminal();

  struct Size {
    std::size_t lines = 24;
    std::size_t columns = 80;
  };
  static Size size();

  // Shows `text` instead of what was there, its lines cut at the screen's right side, and `last` at
  // the bottom.
  static void show(std::string_view text, std::string_view last);

  // Returns the descriptor that keys come from, or -1 if standard input is no terminal.
  int keys() const { return keys_; }
  // Returns what was typed, without waiting. Ctrl-C and Ctrl-D are 'q'.
  std::string typed() const;

 private:
  int keys_ = -1;
  termios before_{};
};

// Waits in a command that goes on until it is told to end. wait() reports signals, between two
// pieces of work, so that a terminal is put back and a line is whole.

enum class Woken { time, input, resized, end };

class Signals : NotCopied {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH from here on, also in threads that are
  // started later.
  Signals();
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
