// A command of the user's for each window's file that is whole, and how many of the files stay.
#pragma once

#include <sys/types.h>

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
  // `command`: run by the shell with {} replaced by the file's path; empty: none. `keep`: so many
  // files of a rank stay, the last ones, and those that the command failed for; nothing: all.
  WindowCommands(std::string command, std::optional<std::uint64_t> keep, const sigset_t& mask)
      : command_(std::move(command)), keep_(keep), mask_(mask) {}

  // A file that is whole. One command runs at a time, in this order.
  void add(const std::string& rank, const std::filesystem::path& file);
  // Looks whether the one that runs has ended; then the next one begins.
  void look();
  bool busy() const { return child_ > 0 || !waiting_.empty(); }
  void stop(int signal) const;

  std::uint64_t files() const { return files_; }
  std::uint64_t deleted() const { return deleted_; }

 private:
  struct File {
    std::filesystem::path path;
    bool done = false;  // its command has ended
  };

  void begin_next();
  void first_ended(bool well);
  void delete_old();

  const std::string command_;
  const std::optional<std::uint64_t> keep_;
  const sigset_t mask_;
  std::map<std::string, std::deque<File>> here_;  // by rank
  std::deque<std::pair<std::string, std::filesystem::path>> waiting_;
  pid_t child_ = -1;  // of the first of these
  std::uint64_t files_ = 0;
  std::uint64_t deleted_ = 0;
};

}  // namespace tprof::live
