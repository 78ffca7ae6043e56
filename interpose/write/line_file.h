// The rank file on its disk. Blocks are reserved before lines need them, and the file is written
// again if somebody removes it. One caller at a time.
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

  // Opens the file again if the program has closed our descriptor. False, with one line said: it is
  // not there any more.
  bool still_ours();
  // Reserves blocks for the file up to `until`; it has been written up to `from`. False: there is
  // no room. True also where nobody can know that before the write.
  bool reserve(std::uint64_t from, std::uint64_t until);
  bool write(std::string_view text, std::uint64_t at) { return write_all(file_.fd, text, at); }
  // Takes back what is behind the first `size` bytes, written or reserved.
  bool cut(std::uint64_t size);

  // True if the file was removed.
  bool nameless() const { return file_.still_ours() && names_of(file_.fd) == 0; }
  // Writes a removed file again, from its first `size` bytes, which live as long as our descriptor
  // does. The descriptor keeps its number. False: the folder is gone, or another file has the name.
  bool bring_back(std::uint64_t size);
  std::uint32_t times_brought_back() const { return times_brought_back_; }

 private:
  View view_;
  OwnFile file_;
  std::uint64_t reserved_ = 0;  // the file has its blocks up to here
  bool reserves_ = true;        // its file system gives them without a write
  std::uint32_t times_brought_back_ = 0;
};

// Says that `errno` kept us from writing.
void complain_of_write(std::string_view what);

// The files that windows have of their own (TPROF_WINDOW_FILES), at their places in Progress. One
// caller at a time.
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
