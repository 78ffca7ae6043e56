// Runs commands of the user's with the shell.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "children/child.h"
#include "interpose/base/not_copied.h"

namespace tprof::live {

// The process group of the command. A Ctrl-C that ends the job does not reach a group of its own.
enum class Group { ours, own };

// Starts it, waits for it, and returns its wait status.
int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group);

// Returns the command with every `placeholder` replaced.
std::string filled_in(std::string command, std::string_view placeholder, std::string_view by);

// Returns "exited with 3" or "was ended by signal 9 (Killed)".
std::string how_it_ended(int wait_status);

// Runs a command for each window's file that is whole, and deletes old ones.
class WindowCommands {
 public:
  // `command` is run by the shell with {} replaced by the file's path; empty: none. The last `keep`
  // files of a rank stay, and those that the command failed for; nullopt: all stay.
  WindowCommands(std::string command, std::optional<std::uint64_t> keep, const sigset_t& mask)
      : command_(std::move(command)), keep_(keep), mask_(mask) {}

  // Takes a file that is whole. Returns when its command has ended. Throws std::runtime_error.
  void take(const std::string& rank, const std::filesystem::path& file);

  std::uint64_t files() const { return files_; }
  std::uint64_t deleted() const { return deleted_; }

 private:
  bool run(const std::filesystem::path& file) const;

  const std::string command_;
  const std::optional<std::uint64_t> keep_;
  const sigset_t mask_;
  std::map<std::string, std::deque<std::filesystem::path>> here_;  // by rank
  std::uint64_t files_ = 0;
  std::uint64_t deleted_ = 0;
};

// A command of the user's that reads lines from its standard input while a job runs, as from
// `tprof tail | CMD`.

// Waits for the end of a job, and returns true if it has come: then `told`, which processes beside
// it have, is at its end.
bool at_end(int told, std::chrono::nanoseconds most);

// Has a process of its own to write to it, so that it may take its time: until the job is over, it
// keeps nobody waiting.
class Handler : NotCopied {
 public:
  // Starts it with the shell, in a process group of its own and with the signal mask `mask`. `told`
  // is a descriptor that is at its end when the job is over; from then on the command has `wait` to
  // read the rest and to end. Throws std::runtime_error.
  Handler(std::string command, std::chrono::nanoseconds wait, int told, const sigset_t& mask);
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
