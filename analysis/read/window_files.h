// The windows' own files (TPROF_WINDOW_FILES), beside the rank file.
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
  std::string_view said{};  // the part of the line that speaks of the file
};
// Returns nullopt if it is no such line, or if the library would not give this name.
std::optional<NamedWindow> named_window(std::string_view line);

// Returns the source of a window's lines: its file, or what there is of it so far. nullopt if that
// is not here, or is another process's.
std::optional<Source> window_source(const Source& rank_file, const std::string& name);

// Keeps only those lines of a window's file that are in no rank file: the lines of its events. They
// stay in place.
void leave_events(Block& block);

// Sets `windows_missing` of the process, and adds the lines in these files to those dropped.
void count_missing_windows(const Source& rank_file, Process& process);

// A window's file without its rank file has lines but no counts. Makes its ledger and footer from
// its lines.
void count_lines_of_window(Trace& trace);

// Returns "rank-00003" for rank-00003.step-100.json, and "" for other names.
std::string stem_of_rank_file(std::string_view window_file);

// Completes and renames the windows' files that a process left unfinished, if it may have any.
// `rank_file` has to be whole, with the lines of all of its windows.
void name_window_files(const Source& rank_file);

}  // namespace tprof::read
