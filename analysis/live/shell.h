// Runs commands of the user's with the shell.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "children/child.h"

namespace tprof::live {

// The process group of the command. A Ctrl-C that ends the job does not reach a group of its own.
enum class Group { ours, own };

// Starts the command with `input` for its standard input and with the signal mask `mask`. Throws
// std::runtime_error.
children::Child start_in_shell(const std::string& command, int input, const sigset_t& mask,
                               Group group);
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

}  // namespace tprof::live
