// The windows' separate files (TPROF_WINDOW_FILES) beside the rank file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "read/load.h"
#include "read/process.h"

namespace tprof::read {

// True if the process may have lines in such files.
bool has_window_files(const Header& header);

// A tprof_window line that names a file.
struct NamedWindow {
  std::string file;
  std::uint64_t lines = 0;  // number of calls and launches, as far as known
  std::string_view said{};  // the part of the line about the file
};
// Returns nullopt if it is no such line, or if the library would not use this name.
std::optional<NamedWindow> named_window(std::string_view line);

// Returns the source of a window's lines: its file, complete or not. nullopt if that is missing, or
// another process's.
std::optional<Source> window_source(const Source& rank_file, const std::string& name);

// Keeps only the event lines of a window's file: the others are in the rank file too.
void leave_events(Block& block);

// Sets `windows_missing`, and counts the lines of these files as dropped.
void count_missing_windows(const Source& rank_file, Process& process);

// Makes a ledger and a footer from the lines of a window's file without a rank file.
void count_lines_of_window(Trace& trace);

// Returns "rank-00003" for rank-00003.step-100.json, and "" for other names.
std::string stem_of_rank_file(std::string_view window_file);

// Completes and renames the unfinished windows' files of a process. `rank_file` has to be complete.
void name_window_files(const Source& rank_file);

}  // namespace tprof::read
