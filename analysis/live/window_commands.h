// Runs a command of the user's for each window's file that is whole, and deletes old ones.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tprof::live {

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
