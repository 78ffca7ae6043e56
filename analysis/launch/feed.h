// Feeds what the user runs beside the command of `tprof run`: handlers, which get the lines of its
// ranks, and a command for each window's file. Each has a process of its own.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "live/folder_lines.h"

namespace tprof::launch {

// The files of a run.
struct RunFiles {
  std::filesystem::path folder;
  live::FolderLines::Chosen chosen;  // which files of the folder
};

// `told` is a descriptor that is at its end when the job is over and the files of its dead
// processes are whole. These return when the job and the user's commands have ended, and print a
// line on standard error for what failed. They throw std::exception.

// The command has `wait` to end behind the job.
void feed_handler(const RunFiles& run, const std::string& command, std::chrono::nanoseconds wait,
                  int told, const sigset_t& mask);

// Runs `command` (empty: none) for each window's file, and keeps the last `keep` of a rank.
void feed_window_commands(const RunFiles& run, const std::string& command,
                          std::optional<std::uint64_t> keep, bool quiet, int told,
                          const sigset_t& mask);

}  // namespace tprof::launch
