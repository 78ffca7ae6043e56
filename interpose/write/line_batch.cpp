#include "interpose/write/line_batch.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/complain.h"
#include "interpose/format/commit.h"

namespace tprof {

LineBatch::LineBatch(const View& of) : view(of), file(view), drain(view), windows(view) {
  next.offset = view.head().header_bytes;
  commit(next);
}

void LineBatch::open(int fd) {
  file.open(fd);
  file.reserve(committed_.offset, committed_.offset + closing_bytes_);
}

void LineBatch::begin() {
  next = committed_;
  text.clear();
  windows.clear();
}

void LineBatch::flush(std::uint64_t events) {
  const std::uint64_t at = committed_.offset;
  const std::uint64_t end_offset = at + text.size();
  const bool empty = text.size() == 0 && windows.empty();
  const bool ours = empty || file.still_ours();
  const bool fits = empty || (ours && file.reserve(at, end_offset + closing_bytes()));
  if (fits && !text.failed() && windows.write(next) && file.write(text.view(), at)) {
    next.offset = end_offset;
    const bool moved = std::memcmp(next.tail, committed_.tail, sizeof next.tail) != 0;
    if (!empty || moved) commit(next);
    return;
  }
  if (ours) complain_of_write("cannot write the trace, counting goes on: ");
  if (fits) windows.cut_back(committed_, next);
  if (fits) file.cut(at);  // a part of the batch may be in the file
  lose(events);
}

void LineBatch::lose(std::uint64_t events) {
  const Progress& before = committed_;
  next.dropped[static_cast<std::size_t>(Dropped::write_error)] += events;
  next.range_dropped[static_cast<std::size_t>(RangeDropped::write_error)] +=
      next.range_lines - before.range_lines;
  next.range_lines = before.range_lines;
  next.range_bytes = before.range_bytes;
  next.lines_bytes = before.lines_bytes;
  next.metric_bytes = before.metric_bytes;
  next.steps_dropped += next.step_lines - before.step_lines;
  next.step_lines = before.step_lines;
  next.step_bytes = before.step_bytes;
  // The tables' lines come again with the next batch.
  next.tables = before.tables;
  next.windows = before.windows;
  next.window_files = before.window_files;
  next.window_lines = before.window_lines;
  std::memcpy(next.window_file, before.window_file, sizeof next.window_file);
  commit(next);
}

bool LineBatch::close() {
  const std::uint64_t at = committed_.offset;
  const std::uint64_t end_offset = at + text.size();
  if (!file.still_ours()) return false;
  if (text.failed() || !file.reserve(at, end_offset) || !file.write(text.view(), at)) {
    complain_of_write("cannot close the trace, tprof recover may: ");
    return false;
  }
  if (!file.cut(end_offset)) return false;
  if (file.nameless() && !file.bring_back(end_offset)) {
    complain(Trouble::removed, "the trace is lost: its file was removed while the process ran");
  }
  Progress closed = committed_;
  closed.closed = 1;
  commit(closed);
  return true;
}

void LineBatch::reopen() {
  Progress open = committed_;
  open.closed = 0;
  commit(open);
  file.cut(open.offset);  // else a part of the old end could stand behind shorter lines
}

void LineBatch::commit(const Progress& progress) {
  committed_ = progress;
  commit_progress(view.head(), committed_);
  view.each_thread([&](ThreadArea& t, std::uint32_t i) {
    t.tail.store(committed_.tail[i], std::memory_order_release);
  });
}

// Twice as much, since ledgers grow.
void LineBatch::needs_to_close(std::uint64_t bytes) {
  closing_bytes_ = std::max(kClosingBytes, 2 * bytes);
}

// Adds what communicators add to the ledger and after it.
std::uint64_t LineBatch::closing_bytes() const {
  return closing_bytes_ + std::uint64_t{next.tables.comms} * kClosingBytesOfComm;
}

}  // namespace tprof
