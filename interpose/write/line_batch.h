// A batch of lines on its way into the rank file and the files of windows: it counts as written
// when it is committed, whole or not at all. One caller at a time.
#pragma once

#include <cstdint>

#include "interpose/base/text.h"
#include "interpose/lines/drain.h"
#include "interpose/write/line_file.h"

namespace tprof {

// Room for the lines that close a file. It is kept free of all others, so that a disk that fills up
// costs lines and not the counts.
inline constexpr std::uint64_t kClosingBytes = 64 << 10;
inline constexpr std::uint64_t kClosingBytesOfComm = 512;  // its line and its part of the ledger

class LineBatch : public Drain {
 public:
  explicit LineBatch(const View& of);
  // `fd`: the rank file, which has its first lines.
  void open(int fd);

  // Starts lines that are to follow what is committed.
  void begin();
  // Writes the lines and commits what `next` says of them. Lines that do not fit count as lost.
  void flush();
  // Counts the batch as lost: it gets no lines.
  void lose();

  // Which windows' files are given their end. oldest: that one, because the next one needs its
  // place. late: those of windows that have ended a second ago. all: because nothing more comes to
  // any of them.
  enum class Which { oldest, late, all };
  // Completes them in commits of their own, so that a kill leaves a file as it was or complete with
  // the same lines, and gives windows their lines.
  void complete_windows(Which which);

  // Writes the lines as the end of the file, beyond what is committed: lines that come later are
  // written over them. False: they did not fit, and what was there stays.
  bool close();
  // Takes that end back.
  void reopen();

  const Progress& committed() const { return committed_; }
  std::uint64_t offset() const { return committed_.written.file[kRankFile].offset; }
  void cost(std::uint64_t cpu_ns) { committed_.self_ns = cpu_ns; }  // so far
  // Notes how long the lines are that a file would need now to be closed.
  void needs_to_close(std::uint64_t bytes);

  LineFile file;

 private:
  bool write();
  void commit(const Progress& progress);
  std::uint64_t closing_bytes() const;

  WindowFiles window_files_;
  Progress committed_{};
  std::uint64_t closing_bytes_ = kClosingBytes;
};

}  // namespace tprof
