// A command of the user's that reads lines from its standard input while a job runs, as from
// `tprof tail | CMD`.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "children/child.h"

namespace tprof::live {

// Waits for the end of a job, and returns true if it has come: then `told`, which processes beside
// it have, is at its end.
bool at_end(int told, std::chrono::nanoseconds most);

// Has a process of its own to write to it, so that it may take its time: until the job is over, it
// keeps nobody waiting.
class Handler {
 public:
  // Starts it with the shell, in a process group of its own and with the signal mask `mask`. `told`
  // is a descriptor that is at its end when the job is over; from then on the command has `wait` to
  // read the rest and to end. Throws std::runtime_error.
  Handler(std::string command, std::chrono::nanoseconds wait, int told, const sigset_t& mask);
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  ~Handler();

  // Writes lines as it reads them. Returns false if it takes no more: it has ended, or has had its
  // time.
  bool give(std::string_view lines);
  // Ends its standard input and waits until it ends, which it must in time. Returns what there is
  // to say about it, without its name: empty if there is nothing.
  std::string end();

 private:
  using Clock = std::chrono::steady_clock;

  // Returns the time that is left to it, or nullopt while the job is not over.
  std::optional<std::chrono::nanoseconds> time_left();
  bool ends_in_time(std::chrono::nanoseconds more);

  const std::string command_;
  const std::chrono::nanoseconds wait_;
  const int told_;
  std::optional<Clock::time_point> over_;
  children::Child shell_;
  std::optional<int> status_;  // its wait status, once it has ended
  int to_ = -1;                // the pipe to it
};

}  // namespace tprof::live
