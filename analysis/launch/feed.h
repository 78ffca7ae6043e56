// Feeds what the user runs beside the command of `tprof run`: handlers, which get the lines of its
// ranks, and a command for each window's file.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "live/folder_lines.h"
#include "live/handlers.h"
#include "live/window_commands.h"

namespace tprof::launch {

struct Fed {
  std::vector<std::string> handlers;
  std::chrono::nanoseconds handler_wait;  // how long they may take to end after the last line
  std::string on_window;
  std::optional<std::uint64_t> keep_windows;
  std::filesystem::path folder;
  live::FolderLines::Chosen chosen;  // which files of the folder
};

class Feed {
 public:
  // `told` delivers a byte when the job has ended, and end of file when `tprof run` is gone.
  Feed(const Fed& fed, int told, const sigset_t& mask);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  ~Feed();

  void until_the_end();
  // Prints one line on standard error for each that lost lines or failed.
  void report(bool quiet) const;

 private:
  using Clock = std::chrono::steady_clock;

  void look();
  void take(const live::RankLines& file, const std::string& lines);
  void make_room();
  void look_for_window(const live::RankLines& file, std::string_view line);
  void give_window(const std::filesystem::path& file);
  void serve(std::chrono::nanoseconds most);
  void end_handlers();
  void stop(int signal);
  void wait_for_handlers(std::chrono::nanoseconds most);

  const Fed& fed_;
  const int told_;
  int ended_ = -1;  // a signalfd for SIGCHLD
  live::FolderLines lines_;
  live::Handlers handlers_;
  live::WindowCommands windows_;
  std::set<std::filesystem::path> files_;  // files that handlers were told of
  std::optional<Clock::time_point> over_;  // when the job ended
  bool left_alone_ = false;                // `tprof run` is gone
};

}  // namespace tprof::launch
