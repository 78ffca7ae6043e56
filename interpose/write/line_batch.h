// A batch of lines for the rank file and the files of windows. It is committed as a whole, or
// counts as not written. One caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/write/drain.h"
#include "interpose/write/line_file.h"

namespace tprof {

// Disk space reserved for the lines that close a file, so that a full disk costs lines but not the
// counts.
inline constexpr std::uint64_t kClosingBytes = 64 << 10;
inline constexpr std::uint64_t kClosingBytesOfComm = 512;  // its line and its part of the ledger

class LineBatch : public Drain {
 public:
  explicit LineBatch(const View& of);
  // `fd`: the rank file, which has its first lines.
  void open(int fd);

  // Starts a batch that follows the committed lines.
  void begin();
  // Writes the lines and commits `next`. Lines that do not fit count as lost.
  void flush();
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
