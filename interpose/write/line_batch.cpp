#include "interpose/write/line_batch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/format/commit.h"
#include "interpose/format/file_names.h"

namespace tprof {

namespace {

// Reports a failed write, with `errno`.
void complain_of_write(std::string_view what) {
  const bool room = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  complain(room ? Trouble::room : Trouble::write, what, std::strerror(errno));
}

}  // namespace

LineBatch::LineBatch(const View& of) : Drain(of) {
  next.written.file[kRankFile].offset = view.head().header_bytes;
  commit(next);
}

void LineBatch::open(int fd) {
  file_[kRankFile].open(own_file(fd));
  file_[kRankFile].reserve(offset(), offset() + closing_bytes_);
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

LineBatch::Path LineBatch::path_of(std::size_t n, std::string_view end) const {
  const Head& head = view.head();
  Path path;
  FixedText to(path.text);
  if (n == kRankFile) {
    put_beside(to, head, "", ".json");
  } else {
    to << bounded_text(head.directory) << "/";
    window_file_name(to, view, next.written.file[n]);
    to << end;
  }
  return path;
}

bool LineBatch::rank_file_is_ours() const {
  if (file_[kRankFile].still_ours()) return true;
  complain(Trouble::descriptor,
           "the program closed the trace's descriptor: no more lines, tprof recover can get the "
           "counts");
  return false;
}

// Creates a window's file. Never overwrites a file, complete or not.
bool LineBatch::create(std::size_t n) {
  constexpr std::uint32_t kAttempts = 1000;
  for (std::uint32_t& attempt = next.written.file[n].attempt; attempt < kAttempts; ++attempt) {
    if (file_at(path_of(n).text).known) continue;
    const OwnFile made = create_file(path_of(n, kUnfinishedFile).text, 0666);
    file_[n].open(made);
    if (made.fd >= 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

bool LineBatch::write(std::size_t n) {
  FileLines& to = next.written.file[n];
  const std::uint64_t end = to.offset + text[n].size();
  if (end == to.offset) return true;
  if (n != kRankFile && to.offset == 0 && !create(n)) return false;
  if (!file_[n].still_ours() || text[n].failed() || !file_[n].reserve(to.offset, end) ||
      !file_[n].write(text[n].view(), to.offset)) {
    return false;
  }
  to.offset = end;
  return true;
}

// Returns false, with nothing in the files, if the batch could not be written as a whole.
bool LineBatch::write() {
  if (!rank_file_is_ours()) return false;
  const bool fits = file_[kRankFile].reserve(offset(), offset() + out().size() + closing_bytes());
  bool well = fits;
  for (std::size_t n = kLineFiles; well && n-- != 0;) well = write(n);
  if (well) return true;
  complain_of_write("cannot write the trace, counting goes on: ");
  if (fits) cut_back();
  return false;
}

void LineBatch::cut_back() {
  for (std::size_t n = 0; n < kLineFiles; ++n) {
    const std::uint64_t whole = committed_.written.file[n].offset;
    if (n == kRankFile || whole != 0) {
      file_[n].cut(whole);
    } else if (file_[n].still_ours()) {
      unlink(path_of(n, kUnfinishedFile).text);
      file_[n].close();
    }
  }
}

// Writes the end of a window's file and gives it its final name. If that fails, it keeps its
// unfinished name: readers know both.
void LineBatch::complete(std::size_t n) {
  window_file_end(text[n], view, next.written.file[n]);
  const Path part = path_of(n, kUnfinishedFile);
  if (!write(n) || !file_[n].cut(next.written.file[n].offset) ||
      rename(part.text, path_of(n).text) != 0) {
    complain(Trouble::write,
             "cannot complete the file of a window, counting goes on: ", std::strerror(errno));
  }
  file_[n].close();
  next.written.file[n].complete = 1;
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
    const std::uint64_t to_ns =
        window_numbered(view, next.written.file[n].window).to_ns.load(std::memory_order_acquire);
    if (which == Which::late && (to_ns > now || now - to_ns < kLateNs)) break;
    complete(n);
    commit(next);
    if (which == Which::oldest) break;
  }
  begin();
  windows(which == Which::oldest ? WindowLines::complete : WindowLines::ended);
  flush();
}

bool LineBatch::close() {
  LineFile& file = file_[kRankFile];
  const std::uint64_t end = offset() + out().size();
  if (!rank_file_is_ours()) return false;
  if (out().failed() || !file.reserve(offset(), end) || !file.write(out().view(), offset())) {
    complain_of_write("cannot close the trace, tprof recover may: ");
    return false;
  }
  if (!file.cut(end)) return false;
  if (file.nameless()) {
    complain(Trouble::removed, "the trace is lost: its file was removed while the process ran");
  }
  Progress closed = committed_;
  closed.closed = 1;
  commit(closed);
  return true;
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
