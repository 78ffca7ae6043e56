// The rank file on its disk. Blocks are reserved in advance, and the file is written again if it is
// removed. One caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/base/text.h"
#include "interpose/format/view.h"
#include "interpose/lines/window_lines.h"

namespace tprof {

class LineFile {
 public:
  explicit LineFile(const View& view) : view_(view) {}
  void open(int fd) { file_ = own_file(fd); }

  // Opens the file again if the program has closed our descriptor. Returns false, with a message,
  // if it is gone.
  bool still_ours();
  // Reserves blocks for the file up to `until`; it is written up to `from`. Returns false if there
  // is no room; true also if that can't be known before the write.
  bool reserve(std::uint64_t from, std::uint64_t until);
  bool write(std::string_view text, std::uint64_t at) { return write_all(file_.fd, text, at); }
  // Cuts the file, written or reserved, to `size` bytes.
  bool cut(std::uint64_t size);

  // True if the file was removed.
  bool nameless() const { return file_.still_ours() && names_of(file_.fd) == 0; }
  // Writes a removed file again from its first `size` bytes, which exist as long as our descriptor.
  // The descriptor keeps its number. Returns false if the folder is gone, or another file has the
  // name.
  bool bring_back(std::uint64_t size);
  std::uint32_t times_brought_back() const { return times_brought_back_; }

 private:
  View view_;
  OwnFile file_;
  std::uint64_t reserved_ = 0;  // blocks are reserved up to here
  bool reserves_ = true;        // the file system can reserve blocks
  std::uint32_t times_brought_back_ = 0;
};

// Reports a failed write, with `errno`.
void complain_of_write(std::string_view what);

// The files of windows (TPROF_WINDOW_FILES), at their places in Progress. One caller at a time.
class WindowFiles {
 public:
  explicit WindowFiles(const View& view) : view_(view) {}

  // Writes the text of a file, and advances its offset. Creates the file if needed. Returns false
  // if not all could be written: call cut_back() then.
  bool write(std::size_t n, FileLines& file, const Text& text);
  // Cuts a file to its first `whole` bytes; removes an empty one.
  void cut_back(std::size_t n, const FileLines& file, std::uint64_t whole);

  // Writes a file's end and gives it its final name. If that fails, it keeps its unfinished name:
  // readers know both.
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
