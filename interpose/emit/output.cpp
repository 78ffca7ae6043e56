#include "interpose/emit/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/format/commit.h"
#include "interpose/lines/last_calls.h"

namespace tprof {
namespace {

// The contract's intervals. Ledgers come often at first, when most that can go wrong does; a day of
// them is 150 lines.
constexpr std::uint64_t kFirstLedgerNs = 10'000'000'000;
constexpr std::uint64_t kLongestLedgerNs = 600'000'000'000;

// True if the wall clock was set between the two. It may drift, and be slewed, by 500 ppm each.
bool stepped(const ClockAnchor& from, const ClockAnchor& to) {
  const std::uint64_t mono = to.mono_ns - from.mono_ns;
  const auto difference = static_cast<std::int64_t>(to.real_ns - from.real_ns - mono);
  const auto allowed =
      static_cast<std::int64_t>(1'000'000 + mono / 1000 + from.bracket_ns + to.bracket_ns);
  return difference > allowed || difference < -allowed;
}

Trouble trouble_of(int error) {
  const bool room = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return room ? Trouble::room : Trouble::write;
}

}  // namespace

Output::Output(const View& view, int fd, std::uint64_t offset, int snapshot,
               const MetricsWanted& wanted)
    : view_(view),
      file_(own_file(fd)),
      drain_(view_),
      files_(view_, fd),
      snapshot_(snapshot, view.head().base_real_ns),
      last_ledger_ns_(now_ns()),
      ledger_every_ns_(kFirstLedgerNs),
      last_clock_(clock_anchor()) {
  Progress start{};
  start.offset = offset;
  commit(start);
  reserve(offset + closing_bytes_);
  sampler_.begin(wanted, last_ledger_ns_);
  if (sampler_.due(last_ledger_ns_)) read_metrics(last_ledger_ns_);
}

bool Output::drain_batch() {
  return drain(nullptr, true);
}

void Output::drain_rest(std::uint64_t until_ns) {
  std::memset(last_, 0, sizeof last_);
  view_.each_thread([&](const ThreadArea& t, std::uint32_t i) {
    last_[i] = t.head.load(std::memory_order_acquire);
  });
  bool more = true;
  while (more && now_ns() < until_ns) more = drain(last_, true);
  if (more)
    complain(Trouble::time, "no time to write all lines at exit, the rest is counted as dropped");
  while (more) more = drain(last_, false);
  const std::uint64_t now = now_ns();
  if (sampler_.due_at_end(now)) read_metrics(now);
  show_memory(now);
  complete_windows(Which::all);
}

// Writes a batch; with `written` false it counts as lost.
bool Output::drain(const std::uint64_t* last, bool written) {
  begin();
  std::uint64_t events = 0;
  const bool more = !drain_.run(text_, next_, events, last, files_.texts());
  written ? flush(events) : lose(events);
  if (drain_.file_wanted()) complete_windows(Which::oldest);
  return more;
}

// Completes files in commits of their own, so that a kill leaves a file as it was or complete with
// the same lines.
void Output::complete_windows(Which which) {
  const std::uint32_t opened = view_.head().windows.opened.load(std::memory_order_acquire);
  if (files_.texts() == nullptr || opened == progress_.windows) return;
  constexpr std::uint64_t kLateNs = 1'000'000'000;  // for calls that return after the end
  const std::uint64_t now = now_ns();
  for (;;) {
    WindowFile* oldest = nullptr;
    begin();
    for (WindowFile& file : next_.window_file) {
      if (file.window == 0 || file.complete != 0) continue;
      const std::uint64_t to_ns =
          window_of(view_, file.window).to_ns.load(std::memory_order_acquire);
      if (which == Which::late && (to_ns > now || now - to_ns < kLateNs)) continue;
      if (oldest == nullptr || file.window < oldest->window) oldest = &file;
    }
    if (oldest == nullptr) break;
    files_.complete(*oldest, static_cast<std::size_t>(oldest - next_.window_file));
    oldest->complete = 1;
    commit(next_);
    if (which == Which::oldest) break;
  }
  begin();
  drain_.windows(text_, next_, which == Which::oldest ? WindowLines::complete : WindowLines::ended);
  if (text_.size() != 0) flush(0);
}

void Output::end_epoch(std::string_view ledger) {
  const LockGuard guard(ending_);
  ended_[fills_] << ledger;
  ++ended_epochs_;
}

void Output::write_ended_epochs() {
  Text* ended = nullptr;
  std::uint32_t epochs = 0;
  {
    const LockGuard guard(ending_);
    if (ended_epochs_ == 0) return;
    ended = &ended_[fills_];
    epochs = std::exchange(ended_epochs_, 0);
    fills_ ^= 1;
  }
  begin();
  text_ << ended->view();
  next_.epoch += epochs;
  flush(0);
  ended->clear();
}

void Output::tick() {
  write_ended_epochs();
  const ClockAnchor clock = clock_anchor();
  view_.head().alive_ns.store(clock.mono_ns, std::memory_order_relaxed);
  look_after_name(clock.mono_ns);
  complete_windows(Which::late);
  if (snapshot_.due(view_, clock.mono_ns)) snapshot(clock.mono_ns);
  if (sampler_.due(clock.mono_ns)) read_metrics(clock.mono_ns);
  show_memory(clock.mono_ns);
  const std::uint64_t made = transactions();
  const bool due = clock.mono_ns - last_ledger_ns_ >= ledger_every_ns_;
  if (due && made != last_transactions_) {
    last_transactions_ = made;
    ledger_every_ns_ = std::min(2 * ledger_every_ns_, kLongestLedgerNs);
    ledger(clock, "interval");
  } else if (stepped(last_clock_, clock)) {
    begin();
    clock_line(text_, view_, clock);
    flush(0);
  } else {
    return;
  }
  last_clock_ = clock;
}

void Output::dump() {
  write_ended_epochs();
  last_clock_ = clock_anchor();
  ledger(last_clock_, "dump");
}

void Output::ledger(const ClockAnchor& clock, std::string_view reason) {
  last_ledger_ns_ = clock.mono_ns;
  begin();
  clock_line(text_, view_, clock);
  ledger_line(text_, view_, sums_, clock.mono_ns, next_.epoch, reason, false);
  closing_bytes_ = std::max<std::uint64_t>(kClosingBytes, 2 * text_.size());
  flush(0);
}

// Writes what recovery would add to the file if the process died now.
void Output::snapshot(std::uint64_t now_ns) {
  begin();
  for (WindowFile& file : next_.window_file) {
    file.complete = file.window;  // no more lines about it
    file.lines = kLinesUnknown;   // there may be more by the time that this is read
  }
  drain_.open_calls(text_, next_, false);
  LastCalls last;
  last.add_threads(view_);
  last.lines(text_, view_, next_.tid);
  ledger_line(text_, view_, sums_, now_ns, next_.epoch, "interval", false);
  drain_.communicators(text_);
  footer_line(text_, view_, sums_, next_, Complete::no);
  if (!text_.failed()) snapshot_.write(text_.view(), progress_.offset);
}

void Output::read_metrics(std::uint64_t now_ns) {
  begin();
  sampler_.read(now_ns, window_at(view_.head().windows, now_ns),
                [&](const Counter& c, std::uint64_t at_ns) {
                  drain_.metric(text_, next_, c, at_ns, files_.texts());
                });
  flush(0);
}

void Output::show_memory(std::uint64_t now_ns) {
  begin();
  const std::uint32_t window = window_at(view_.head().windows, now_ns);
  const bool any = memory_.changes(view_.head(), window, [&](const Counter& c) {
    drain_.metric(text_, next_, c, now_ns, files_.texts());
  });
  if (any) flush(0);
}

bool Output::end() {
  write_ended_epochs();
  Progress end = progress_;
  text_.clear();
  drain_.open_calls(text_, end, true);
  clock_line(text_, view_, clock_anchor());
  ledger_line(text_, view_, sums_, now_ns(), end.epoch, "close", true);
  drain_.communicators(text_);
  footer_line(text_, view_, sums_, end, Complete::yes);
  text_ << "]\n";
  const std::uint64_t end_offset = progress_.offset + text_.size();
  if (!still_ours()) return false;
  if (text_.failed() || !reserve(end_offset) ||
      !write_all(file_.fd, text_.view(), progress_.offset)) {
    complain(trouble_of(errno),
             "cannot close the trace, tprof recover may: ", std::strerror(errno));
    return false;
  }
  reserved_ = end_offset;  // the rest is given back
  if (ftruncate(file_.fd, static_cast<off_t>(end_offset)) != 0) return false;
  if (names_of(file_.fd) == 0 && !bring_back(end_offset)) {
    complain(Trouble::removed, "the trace is lost: its file was removed while the process ran");
  }
  snapshot_.end();
  Progress closed = progress_;
  closed.closed = 1;
  commit(closed);
  return true;
}

// Size at the last ledger, plus what communicators add to the ledger and after it.
std::uint64_t Output::closing_bytes() const {
  return closing_bytes_ + std::uint64_t{next_.tables.comms} * kClosingBytesOfComm;
}

void Output::reopen() {
  Progress open = progress_;
  open.closed = 0;
  commit(open);
  cut_back();  // else a part of the old end could stand behind shorter lines
}

void Output::cut_back() {
  if (ftruncate(file_.fd, static_cast<off_t>(progress_.offset)) != 0) errno = 0;
  reserved_ = 0;
}

// Does not bring the file back at once while its folder is there: whoever removed the file may be
// about to remove that too.
void Output::look_after_name(std::uint64_t now_ns) {
  constexpr std::uint64_t kEveryNs = 1'000'000'000;
  if (now_ns < next_name_ns_) return;
  next_name_ns_ = now_ns + kEveryNs;
  const bool was_nameless = std::exchange(nameless_, file_.still_ours() && names_of(file_.fd) == 0);
  if (!nameless_ || !was_nameless || bring_back(progress_.offset)) return;
  complain(Trouble::removed, "the trace is lost, unless its folder is made again while we run: ",
           bounded_text(view_.head().directory));
}

// Writes a removed file again, from its first `size` bytes, which live as long as our descriptor
// does. The descriptor keeps its number. False: the folder is gone, or another file has the name.
bool Output::bring_back(std::uint64_t size) {
  const Head& head = view_.head();
  char path[1300];
  FixedText(path) << bounded_text(head.directory) << "/" << bounded_text(head.rank_file);
  const OwnFile copy = create_file(path, 0666);
  if (copy.fd < 0) return false;
  bool well = size_allowed(size);
  char part[4096];
  for (std::uint64_t at = 0; well && at < size;) {
    const ssize_t n = pread(file_.fd, part, std::min<std::uint64_t>(sizeof part, size - at),
                            static_cast<off_t>(at));
    well = n > 0 && write_all(copy.fd, {part, static_cast<std::size_t>(n)}, at);
    at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  well = well && dup3(copy.fd, file_.fd, O_CLOEXEC) == file_.fd;
  close(copy.fd);
  if (!well) {
    unlink(path);
    return false;
  }
  file_ = own_file(file_.fd);
  reserved_ = 0;
  const std::string_view rank_file = bounded_text(head.rank_file);
  FixedText(path) << bounded_text(head.directory) << "/."
                  << prefix(rank_file, rank_file.size() - std::strlen(".json")) << ".snapshot";
  snapshot_.bring_back(path);
  complain(Trouble::removed, "the trace was removed while the process ran, and is written again: ",
           bounded_text(head.directory));
  return true;
}

void Output::flush(std::uint64_t events) {
  const std::uint64_t end_offset = progress_.offset + text_.size();
  const bool empty = text_.size() == 0 && files_.empty();
  const bool ours = empty || still_ours();
  const bool fits = empty || (ours && reserve(end_offset + closing_bytes()));
  if (fits && !text_.failed() && files_.write(next_) &&
      write_all(file_.fd, text_.view(), progress_.offset)) {
    next_.offset = end_offset;
    const bool moved = std::memcmp(next_.tail, progress_.tail, sizeof next_.tail) != 0;
    if (!empty || moved) commit(next_);
    return;
  }
  if (ours) {
    complain(trouble_of(errno), "cannot write the trace, counting goes on: ", std::strerror(errno));
  }
  if (fits) files_.cut_back(progress_, next_);
  if (fits) cut_back();  // a part of the batch may be in the file
  lose(events);
}

// Counts the batch as lost: it gets no lines.
void Output::lose(std::uint64_t events) {
  next_.dropped[static_cast<std::size_t>(Dropped::write_error)] += events;
  next_.range_dropped[static_cast<std::size_t>(RangeDropped::write_error)] +=
      next_.range_lines - progress_.range_lines;
  next_.range_lines = progress_.range_lines;
  next_.range_bytes = progress_.range_bytes;
  next_.lines_bytes = progress_.lines_bytes;
  next_.metric_bytes = progress_.metric_bytes;
  next_.steps_dropped += next_.step_lines - progress_.step_lines;
  next_.step_lines = progress_.step_lines;
  next_.step_bytes = progress_.step_bytes;
  // The tables' lines come again with the next batch.
  next_.tables = progress_.tables;
  next_.windows = progress_.windows;
  next_.window_files = progress_.window_files;
  next_.window_lines = progress_.window_lines;
  std::memcpy(next_.window_file, progress_.window_file, sizeof next_.window_file);
  commit(next_);
}

bool Output::still_ours() const {
  if (file_.still_ours()) return true;
  complain(
      Trouble::descriptor,
      "the program closed the trace's descriptor: no more lines, tprof recover has the counts");
  return false;
}

// Reserves blocks for the file up to `until`. False: there is no room. True also where nobody can
// know that before the write.
bool Output::reserve(std::uint64_t until) {
  constexpr std::uint64_t kStep = 256 << 10;  // one system call for 1,200 lines
  if (!reserves_ || until <= reserved_) return true;
  for (const std::uint64_t more : {kStep, std::uint64_t{0}}) {
    const Reserved answer =
        reserve_blocks(file_.fd, progress_.offset, until + more - progress_.offset);
    if (answer == Reserved::no) continue;
    reserves_ = answer == Reserved::yes;
    reserved_ = until + more;
    return true;
  }
  return false;
}

void Output::commit(const Progress& next) {
  progress_ = next;
  commit_progress(view_.head(), progress_);
  view_.each_thread([&](ThreadArea& t, std::uint32_t i) {
    t.tail.store(progress_.tail[i], std::memory_order_release);
  });
}

std::uint64_t Output::transactions() const {
  std::uint64_t sum = 0;
  view_.each_thread([&](const ThreadArea& t, std::uint32_t) {
    sum += t.committed.load(std::memory_order_relaxed);
  });
  return sum;
}

}  // namespace tprof
