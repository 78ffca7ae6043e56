#include "interpose/write/line_batch.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/format/commit.h"

namespace tprof {

LineBatch::LineBatch(const View& of) : Drain(of), file(of), window_files_(of) {
  next.written.file[kRankFile].offset = view.head().header_bytes;
  commit(next);
}

void LineBatch::open(int fd) {
  file.open(fd);
  file.reserve(offset(), offset() + closing_bytes_);
}

void LineBatch::begin() {
  next = committed_;
  for (Text& t : text) t.clear();
}

void LineBatch::flush() {
  const bool empty =
      std::all_of(text, text + kLineFiles, [](const Text& t) { return t.size() == 0; });
  if (!empty && !write()) return lose();
  const bool moved = std::memcmp(next.tail, committed_.tail, sizeof next.tail) != 0;
  if (!empty || moved) commit(next);
}

// Returns false, with nothing in the files, if the batch could not be written as a whole.
bool LineBatch::write() {
  if (!file.still_ours()) return false;
  FileLines(&to)[kLineFiles] = next.written.file;
  const std::uint64_t end = offset() + out().size();
  const bool fits = file.reserve(offset(), end + closing_bytes());
  bool well = fits && !out().failed();
  for (std::size_t n = kRankFile + 1; well && n < kLineFiles; ++n) {
    well = window_files_.write(n, to[n], text[n]);
  }
  if (well && file.write(out().view(), offset())) {
    to[kRankFile].offset = end;
    return true;
  }
  complain_of_write("cannot write the trace, counting goes on: ");
  if (!fits) return false;
  for (std::size_t n = kRankFile + 1; n < kLineFiles; ++n) {
    window_files_.cut_back(n, to[n], committed_.written.file[n].offset);
  }
  file.cut(offset());
  return false;
}

// The lines of tables come again in the next batch.
void LineBatch::lose() {
  const WrittenLines& before = committed_.written;
  drop(next.dropped, Dropped::write_error, next.written.calls - before.calls);
  drop(next.range_dropped, RangeDropped::write_error, next.written.ranges - before.ranges);
  next.steps_dropped += next.written.steps - before.steps;
  next.written = before;
  commit(next);
}

void LineBatch::complete_windows(Which which) {
  if (!view.head().windows.files) return;
  const std::uint32_t opened = view.head().windows.opened.load(std::memory_order_acquire);
  if (opened == committed_.written.windows) return;
  constexpr std::uint64_t kLateNs = 1'000'000'000;  // for calls that return after the end
  const std::uint64_t now = now_ns();
  for (;;) {
    begin();
    const std::size_t n = oldest_window_file(next.written);
    if (n == kLineFiles) break;
    FileLines& oldest = next.written.file[n];
    const std::uint64_t to_ns =
        window_numbered(view, oldest.window).to_ns.load(std::memory_order_acquire);
    if (which == Which::late && (to_ns > now || now - to_ns < kLateNs)) break;
    window_files_.complete(n, oldest, text[n]);
    oldest.complete = 1;
    commit(next);
    if (which == Which::oldest) break;
  }
  begin();
  windows(which == Which::oldest ? WindowLines::complete : WindowLines::ended);
  flush();
}

bool LineBatch::close() {
  const std::uint64_t end = offset() + out().size();
  if (!file.still_ours()) return false;
  if (out().failed() || !file.reserve(offset(), end) || !file.write(out().view(), offset())) {
    complain_of_write("cannot close the trace, tprof recover may: ");
    return false;
  }
  if (!file.cut(end)) return false;
  if (file.nameless() && !file.bring_back(end)) {
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
  file.cut(offset());  // otherwise a part of the old end could follow shorter lines
}

void LineBatch::commit(const Progress& progress) {
  committed_ = progress;
  commit_progress(view.head(), committed_);
  view.each_thread([&](ThreadArea& t, std::uint32_t i) {
    t.tail.store(committed_.tail[i], std::memory_order_release);
  });
}

// Twice the size, since ledgers grow.
void LineBatch::needs_to_close(std::uint64_t bytes) {
  closing_bytes_ = std::max(kClosingBytes, 2 * bytes);
}

// Includes what each communicator adds to the ledger and after it.
std::uint64_t LineBatch::closing_bytes() const {
  return closing_bytes_ + std::uint64_t{next.written.file[kRankFile].comms} * kClosingBytesOfComm;
}

}  // namespace tprof
