// The files that windows have of their own (TPROF_WINDOW_FILES), beside the rank file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/lines.h"
#include "read/process.h"

namespace tprof::read {

// Whether lines of the process may be in such files.
bool has_window_files(const Header& header);

// A tprof_window line that names a file.
struct NamedWindow {
  std::string file;
  std::uint64_t lines = 0;  // of calls and launches, as far as it is known
};
// Nothing where it is no such line, or the name is none that the library gives.
std::optional<NamedWindow> named_window(std::string_view line);

// Whence the lines of a window come: its file, or what there is of it so far. Nothing where that is
// not here, or another process's.
std::optional<Source> window_source(const Source& rank_file, const std::string& name);

// Where in a tprof_window line it speaks of its file.
struct Span {
  std::size_t begin = 0;
  std::size_t size = 0;
};
Span file_in(std::string_view line);

// Of a window's file only what is in no rank file stays, where it is: the lines of its events.
void leave_events(Block& block);

// Sets `files_missing` of the process, and what it has fewer lines by.
void count_missing_windows(const Source& rank_file, Process& process);

// "rank-00003" of rank-00003.step-100.json; "" of all that are not named so.
std::string stem_of_rank_file(std::string_view window_file);

// What a process that did not close left unfinished gets its end and its name. `rank_file`: whole,
// with the lines of all of its windows.
void name_window_files(const Source& rank_file);

}  // namespace tprof::read
