// The files that windows have of their own (TPROF_WINDOW_FILES), at their places in Progress. One
// caller at a time.
#pragma once

#include <cstddef>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/lines/window_lines.h"

namespace tprof {

class WindowFiles {
 public:
  explicit WindowFiles(const View& view) : view_(view) {}

  // Writes the text of a file, and moves its offset. Makes a file that does not exist yet. False:
  // not all could be written; cut_back() is next.
  bool write(std::size_t n, FileLines& file, const Text& text);
  // Cuts a file back to its first `whole` bytes; removes one that has none.
  void cut_back(std::size_t n, const FileLines& file, std::uint64_t whole);

  // Gives a file its end and its name. If that fails it keeps its unfinished name: readers know
  // both.
  void complete(std::size_t n, const FileLines& file, Text& end);

 private:
  struct Path {
    char text[1300];
  };
  void put_path(Path& path, const FileLines& file, std::string_view end) const;
  bool create(std::size_t n, FileLines& file);
  bool append(std::size_t n, std::string_view text, std::uint64_t at);

  View view_;
  OwnFile file_[kLineFiles];
};

}  // namespace tprof
