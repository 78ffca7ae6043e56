// Runs the user's commands with the shell.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "children/child.h"
#include "interpose/base/not_copied.h"

namespace tprof::live {

// The command's process group. A Ctrl-C that ends the job does not reach a separate group.
enum class Group { ours, own };

// Runs the command, and returns its wait status.
int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group);

// Returns "exited with 3" or "was ended by signal 9 (Killed)".
std::string how_it_ended(int wait_status);

// A command of the user that reads lines on standard input while a job runs, as in `tprof tail |
// CMD`.

// Waits up to `most` for the end of a job, which is when `told` reaches its end. Returns true if it
// has come.
bool at_end(int told, std::chrono::nanoseconds most);

// A slow handler blocks nobody else while the job runs, since it is fed by its own process.
class Handler : NotCopied {
 public:
  // Starts it with the shell, in its own process group and with the signal mask `mask`. `told`: a
  // descriptor that reaches its end when the job is over; from then on the command has `wait` to
  // read the rest and end. Throws std::runtime_error.
  Handler(std::string command, std::chrono::nanoseconds wait, int told, const sigset_t& mask);
  ~Handler();

  // Writes lines as fast as it reads them. Returns false if it takes no more: it has ended, or its
  // time is over.
  bool give(std::string_view lines);
  // Closes its standard input and waits until it ends, or kills it when its time is over. Returns a
  // message about it, without its name; empty: none.
  std::string end();

 private:
  using Clock = std::chrono::steady_clock;

  // Returns its remaining time, or nullopt while the job runs.
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
