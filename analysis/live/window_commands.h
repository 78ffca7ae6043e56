// Runs a command of the user's for each window's file that is whole, and deletes old ones.
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
  // `command` is run by the shell with {} replaced by the file's path; empty: none. The last `keep`
  // files of a rank stay, and those that the command failed for; nullopt: all stay.
  WindowCommands(std::string command, std::optional<std::uint64_t> keep, const sigset_t& mask)
      : command_(std::move(command)), keep_(keep), mask_(mask) {}

  // Takes a file that is whole. One command runs at a time, in this order.
  void add(const std::string& rank, const std::filesystem::path& file);
  // Checks whether the command that runs has ended, and then begins the next one.
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
  pid_t child_ = -1;  // the command of the first of these
  std::uint64_t files_ = 0;
  std::uint64_t deleted_ = 0;
};

}  // namespace tprof::live
