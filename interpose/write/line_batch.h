// A batch of lines on its way into the rank file and the files of windows: it counts as written
// when it is committed, whole or not at all. One caller at a time.
#pragma once

#include <cstdint>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"
#include "interpose/lines/drain.h"
#include "interpose/write/line_file.h"
#include "interpose/write/steps.h"
#include "interpose/write/window_files.h"

namespace tprof {

// Room for the lines that close a file. It is kept free of all others, so that a disk that fills up
// costs lines and not the counts.
inline constexpr std::uint64_t kClosingBytes = 64 << 10;
inline constexpr std::uint64_t kClosingBytesOfComm = 512;  // its line and its part of the ledger

class LineBatch {
 public:
  explicit LineBatch(const View& of);
  // `fd`: the rank file, which has its first lines.
  void open(int fd);

  // Starts lines that are to follow what is committed.
  void begin();
  // Writes the lines and commits what `next` says of them. Lines that do not fit are left out, and
  // their `events` are counted as lost.
  void flush(std::uint64_t events = 0);
  // Counts the batch as lost: it gets no lines.
  void lose(std::uint64_t events);

  // Writes the lines as the end of the file, beyond what is committed: lines that come later are
  // written over them. False: they did not fit, and what was there stays.
  bool close();
  // Takes that end back.
  void reopen();

  void commit(const Progress& progress);
  const Progress& committed() const { return committed_; }

  // Adds a metric to the batch, in the file of its window if that has one.
  void metric(const Counter& counter, std::uint64_t at_ns) {
    drain.metric(text, next, counter, at_ns, windows.texts());
  }
  void cost(std::uint64_t cpu_ns) { committed_.self_ns = cpu_ns; }  // so far
  // Notes how long the lines are that a file would need now to be closed.
  void needs_to_close(std::uint64_t bytes);

  View view;
  LineFile file;
  Drain<Steps> drain;
  WindowFiles windows;
  Sums sums;
  Text text;        // of the rank file
  Progress next{};  // when the batch is written

 private:
  std::uint64_t closing_bytes() const;

  Progress committed_{};
  std::uint64_t closing_bytes_ = kClosingBytes;
};

}  // namespace tprof
