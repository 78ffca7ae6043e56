// The screen of a live view: plain ANSI escapes on the alternate screen. It is put back however the
// view ends.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

namespace tprof::live {

class Terminal {
 public:
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
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

}  // namespace tprof::live
