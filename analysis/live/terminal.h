// The screen of a live view: plain ANSI escapes on the alternate screen. It is always restored.
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

  // Replaces the screen by `text`, with lines cut at the right side, and `last` at the bottom.
  static void show(std::string_view text, std::string_view last);

  // Returns the descriptor for keys, or -1 if standard input is no terminal.
  int keys() const { return keys_; }
  // Returns typed keys without waiting. Ctrl-C and Ctrl-D become 'q'.
  std::string typed() const;

 private:
  int keys_ = -1;
  termios before_{};
};

// Signals of a command that runs until it is stopped. wait() reports them between two pieces of
// work, so that the terminal is restored and lines are complete.

enum class Woken { time, input, resized, end };

class Signals : NotCopied {
 public:
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH from here on, including in later threads.
  Signals();
  ~Signals();

  // Also wakes up if `fd` is readable or closed; -1: none.
  Woken wait(std::chrono::nanoseconds most, int fd = -1);

  // Returns the signal that ended it, or 0.
  int ended_by() const { return ended_by_; }
  // The previous signal mask, for children.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  int fd_ = -1;
  int ended_by_ = 0;
};

}  // namespace tprof::live
