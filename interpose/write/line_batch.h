// A batch of lines for the rank file and the files of windows. It is committed as a whole, or
// counts as not written. One caller at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"
#include "interpose/base/text.h"
#include "interpose/write/drain.h"

namespace tprof {

// Disk space reserved for the lines that close a file, so that a full disk costs lines but not the
// counts.
inline constexpr std::uint64_t kClosingBytes = 64 << 10;
inline constexpr std::uint64_t kClosingBytesOfComm = 512;  // its line and its part of the ledger

// A file of lines on its disk: the rank file, or a window's. Blocks are reserved in advance.
class LineFile {
 public:
  void open(OwnFile file) {
    *this = {};
    file_ = file;
  }
  void close() {
    if (file_.still_ours()) ::close(file_.fd);
    *this = {};
  }

  // False if the program has closed our descriptor.
  bool still_ours() const { return file_.still_ours(); }
  // Reserves blocks for the file up to `until`; it is written up to `from`. Returns false if there
  // is no room; true also if that can't be known before the write.
  bool reserve(std::uint64_t from, std::uint64_t until) {
    constexpr std::uint64_t kStep = 256 << 10;  // one system call for 1,200 lines
    if (!reserves_ || until <= reserved_) return true;
    for (const std::uint64_t more : {kStep, std::uint64_t{0}}) {
      const Reserved answer = reserve_blocks(file_.fd, from, until + more - from);
      if (answer == Reserved::no) continue;
      reserves_ = answer == Reserved::yes;
      reserved_ = until + more;
      return true;
    }
    return false;
  }
  bool write(std::string_view text, std::uint64_t at) { return write_all(file_.fd, text, at); }
  // Cuts the file, written or reserved, to `size` bytes.
  bool cut(std::uint64_t size) {
    reserved_ = size;
    return ftruncate(file_.fd, static_cast<off_t>(size)) == 0;
  }

  // True if the file was removed.
  bool nameless() const {
    const FileFacts facts = facts_of(file_.fd);
    return still_ours() && facts.known && facts.names == 0;
  }

 private:
  OwnFile file_;
  std::uint64_t reserved_ = 0;  // blocks are reserved up to here
  bool reserves_ = true;        // the file system can reserve blocks
};

class LineBatch : public Drain {
 public:
  explicit LineBatch(const View& of);
  // `fd`: the rank file, which has its first lines.
  void open(int fd);

  // Starts a batch that follows the committed lines.
  void begin();
  // Writes the lines and commits `next`. Lines that do not fit count as lost.
  void flush();
  // Writes a batch of lines with put(text).
  template <typename Put>
  void put(Put&& put) {
    begin();
    put(out());
    flush();
  }
  // Counts the batch as lost and writes no lines.
  void lose();

  // The windows' files to complete. oldest: the next one needs its place. late: those of windows
  // that ended a second ago. all: no more lines will come.
  enum class Which { oldest, late, all };
  // Completes them in separate commits, so that a kill leaves a file either as it was or complete
  // with the same lines, and writes the windows' lines.
  void complete_windows(Which which);

  // Writes the lines as the end of the file, after the committed part: later lines overwrite them.
  // Returns false, and changes nothing, if they did not fit.
  bool close();

  const Progress& committed() const { return committed_; }
  std::uint64_t offset() const { return committed_.written.file[kRankFile].offset; }
  void cost(std::uint64_t cpu_ns) { committed_.self_ns = cpu_ns; }  // so far
  // Notes how many bytes closing the file would now need.
  void needs_to_close(std::uint64_t bytes);

 private:
  struct Path {
    char text[1300];
  };
  // The path of a file of `next`; of a window's with this end of its name.
  Path path_of(std::size_t n, std::string_view end = {}) const;
  bool rank_file_is_ours() const;
  bool create(std::size_t n);
  bool write(std::size_t n);
  bool write();
  void cut_back();
  void complete(std::size_t n);
  void commit(const Progress& progress);
  std::uint64_t closing_bytes() const;

  LineFile file_[kLineFiles];  // at their places in Progress
  Progress committed_{};
  std::uint64_t closing_bytes_ = kClosingBytes;
};

}  // namespace tprof
