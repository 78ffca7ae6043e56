// Turns rings into lines: takes the closed records that have no line yet and gives them one, within
// the quota. Run by the writer thread on the live mapping and by recovery on a dead one.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interpose/format/metrics.h"
#include "interpose/format/setting_values.h"
#include "interpose/lines/counter_lines.h"
#include "interpose/lines/device_lines.h"
#include "interpose/lines/ledger_lines.h"
#include "interpose/lines/lines.h"
#include "interpose/lines/range_lines.h"
#include "interpose/lines/record_sink.h"
#include "interpose/lines/table_lines.h"
#include "interpose/lines/window_lines.h"

namespace tprof {

template <typename Sink = NoSink>
class Drain {
 public:
  explicit Drain(const View& view) : view_(view), sink_(make_sink(view)) {}

  // Appends the lines of all closed records to `out` and moves `p` past them. `events`: how many
  // event lines are among them. Stops at 1 MiB of text, returns false when there may be more.
  // `last`: for each thread, how many of its records are wanted; null: all. `files`: the texts of
  // the windows' files in `p`; null: all goes to `out`. A thread stops where a window begins and
  // there is no place for its file; when all threads have, see `file_wanted`.
  bool run(Text& out, Progress& p, std::uint64_t& events, const std::uint64_t* last = nullptr,
           Text* files = nullptr) {
    files_ = files;
    file_wanted_ = false;
    sink_.begin(p, last != nullptr);
    tables(out, p);  // for all that its lines may name
    for (std::uint32_t i = 0; i < view_.threads(); ++i) {
      const ThreadArea* t = view_.thread(i);
      if (t == nullptr) continue;
      const std::uint64_t until = std::min(last == nullptr ? UINT64_MAX : last[i], sink_.limit(i));
      if (!thread(out, p, *t, i, events, until)) {
        file_wanted_ = false;  // not before all threads' lines of the older windows are written
        return false;
      }
    }
    if (file_wanted_) return false;
    sink_.end(out, p);
    return true;
  }

  // True if the oldest of the windows' files has to be completed before the drain goes on.
  bool file_wanted() const { return file_wanted_; }

  // Writes the lines of windows that have files of their own: they come when the files are
  // complete, and not with the other tables.
  void windows(Text& out, Progress& p, WindowLines far) const {
    if (view_.head().windows.files) window_lines(out, view_, p, far);
  }

  // Writes lines of the calls and ranges that are still open. `last`: nobody will close them any
  // more, nor end the captures that are still going on.
  void open_calls(Text& out, Progress& p, bool last) {
    tables(out, p, last);
    windows(out, p, last ? WindowLines::all : WindowLines::ended);
    each_open_call(view_, [&](const Record& r, const ThreadArea& t) {
      if (view_.function(r.function) != nullptr) {
        call_line(out, view_, r, t.tid.load(std::memory_order_relaxed),
                  stream_number(out, view_, p, r.stream), true);
      }
    });
    each_phase(view_,
               [&](const Record& r, std::uint32_t tid) { life_line(out, view_, r, tid, true); });
    std::uint64_t id = p.range_lines;
    each_open_range(view_, [&](const OpenRange& r, bool started) {
      unfinished_range_line(out, view_, r, started ? ++id : 0);
    });
  }

  // Writes a metric of now, into the open window if there are windows. Behind their quota there are
  // none.
  void metric(Text& out, Progress& p, const Counter& counter, std::uint64_t at_ns, Text* files) {
    files_ = files;
    const std::uint32_t window = window_at(view_.head().windows, at_ns);
    if (no_lines() || window == 0) return;
    has_file(p, window);
    const Place at = place(out, p, window);
    const std::size_t before = at.out.size();
    counter_line(at.out, view_, counter, at_ns, 0);
    within_quota(at.out, before, p.metric_bytes, kMetricsQuotaDivisor);
  }

  // Writes all communicators once more, behind the ledger that ends the file: a reader of its two
  // ends misses the lines of those that were made between them.
  void communicators(Text& out) const {
    std::uint32_t from = 0;
    std::int32_t world = 0;
    communicator_lines(out, view_, from, world);
  }

 private:
  static Sink make_sink(const View& view) {
    if constexpr (std::is_constructible_v<Sink, const View&>) {
      return Sink(view);
    } else {
      return Sink();
    }
  }

  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

  void tables(Text& out, Progress& p, bool last = false) {
    if (!view_.head().windows.files) {
      window_lines(out, view_, p, last ? WindowLines::all : WindowLines::ended);
    }
    table_lines(out, view_, sums_, p.tables, last);
  }

  // The place that the lines of one record go to.
  struct Place {
    Text& out;
    TableLines& tables;
    WindowFile* file;  // null: the rank file
    std::uint64_t& lines_bytes;
    std::uint64_t& range_bytes;
  };
  Place place(Text& out, Progress& p, std::uint32_t window) const {
    WindowFile* file = files_ == nullptr ? nullptr : file_of_window(p, window);
    if (file == nullptr || file->complete != 0) {
      return {out, p.tables, nullptr, p.lines_bytes, p.range_bytes};
    }
    return {files_[file - p.window_file], file->tables, file, file->lines_bytes, file->range_bytes};
  }

  // Makes a file for a window, if it is to have one. False: another one has to be completed first.
  bool has_file(Progress& p, std::uint32_t window) {
    if (files_ == nullptr) return true;
    if (window <= p.windows || file_of_window(p, window) != nullptr) return true;
    for (WindowFile& file : p.window_file) {
      if (file.window != 0) continue;
      file = {};
      file.window = window;
      file.step = window_of(view_, window).first_step.load(std::memory_order_relaxed);
      ++p.window_files;
      return true;
    }
    for (const WindowFile& file : p.window_file) {
      file_wanted_ = file_wanted_ || file.complete == 0;
    }
    return !file_wanted_;
  }

  // Returns the window of a record's line. 0: the line, if there is one, is no window's.
  std::uint32_t window_of_record(const Record& r) const {
    switch (r.function) {
      case kMetaVoid:
      case kMetaThread:
      case kMetaRangeLane:
      case kMetaRangeMore:
      case kMetaDeviceClock:
      case kMetaLife:
        return 0;
      case kMetaBusy:
        return no_lines() ? 0 : window_in(view_.head().windows, r.start_ns, r.start_ns + r.dur_ns);
      default:
        // A device time is in the window of its call.
        return no_lines() ? 0
                          : window_at(view_.head().windows,
                                      r.function == kMetaDevice ? r.count : r.start_ns);
    }
  }

  // A window's file also gets the lines of all streams that have a number.
  std::uint32_t stream(Text& out, Progress& p, const Place& at, std::uint64_t handle) const {
    const std::uint32_t number = stream_number(out, view_, p, handle);
    if (at.file != nullptr) stream_lines(at.out, view_, p, at.tables);
    return number;
  }

  bool thread(Text& out, Progress& p, const ThreadArea& t, std::uint32_t i, std::uint64_t& events,
              std::uint64_t last) {
    const Record* ring = view_.ring(t);
    if (ring == nullptr) return true;
    const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
    const std::uint64_t head = t.head.load(std::memory_order_acquire);
    const std::uint64_t capacity = t.capacity.load(std::memory_order_acquire);  // as of `head`
    if (head - p.tail[i] > capacity) p.tail[i] = head;  // not a ring of ours: nothing to trust
    while (p.tail[i] < head && p.tail[i] < last) {
      const auto r = copy_in_use(ring[p.tail[i] & (capacity - 1)]);
      if (r.txn == 0 || r.txn > committed) break;
      if (size_of(out) >= kBatchBytes) return false;
      if (!has_file(p, window_of_record(r))) break;
      ++p.tail[i];
      if (r.function == kMetaRange) {
        range(out, p, r, t, i, head);
      } else if (r.function == kMetaCounter) {
        counter(out, p, r, t, i, head);
      } else {
        sink_.record(r, t);
        record(out, p, r, i, events);
      }
    }
    return true;
  }

  // A range may go on in the records behind its first one.
  void range(Text& out, Progress& p, const Record& first, const ThreadArea& t, std::uint32_t i,
             std::uint64_t head) {
    RangeRecord r;
    std::memcpy(&r, &first, sizeof r);
    OpenRange range{};
    if (!read_range(view_.ring(t), t.capacity - 1, head, r, p.tail[i], range)) return;
    told(out, p, first, i, [&](Text& to) {
      range_line(to, view_, range, static_cast<RangeKind>(r.kind), r.dur_ns, p.range_lines + 1);
    });
  }
  void counter(Text& out, Progress& p, const Record& first, const ThreadArea& t, std::uint32_t i,
               std::uint64_t head) {
    RangeRecord r;
    std::memcpy(&r, &first, sizeof r);
    Counter counter{};
    if (!read_counter(view_.ring(t), t.capacity - 1, head, r, p.tail[i], counter)) return;
    told(out, p, first, i,
         [&](Text& to) { counter_line(to, view_, counter, r.start_ns, kRangeLane + r.tid); });
  }

  // Writes the line of something that the program told, by `put`, if it may have one.
  template <typename Put>
  void told(Text& out, Progress& p, const Record& first, std::uint32_t i, Put&& put) {
    if (no_lines()) return;  // recorded for the steps only
    const std::uint32_t window = window_of_record(first);
    if (window == 0) {
      ++p.range_dropped[static_cast<std::size_t>(RangeDropped::window)];
      return;
    }
    const Place at = place(out, p, window);
    if (at.file != nullptr) name_thread_lane(at.out, view_, p, *at.file, i, true);
    const std::size_t before = at.out.size();
    put(at.out);
    const bool fits = within_quota(at.out, before, at.range_bytes, kRangeQuotaDivisor);
    ++(fits ? p.range_lines : p.range_dropped[static_cast<std::size_t>(RangeDropped::quota)]);
  }

  bool no_lines() const {
    return view_.head().events == static_cast<std::uint32_t>(EventLines::off);
  }

  // True if TPROF_OPS and TPROF_SIZES choose the call. They name no launch of a graph.
  bool is_chosen(const Record& r) const {
    if (!is_named(r.function, r.bucket)) return false;
    const Head& head = view_.head();
    if (head.sizes[0] == '\0') return true;
    if (r.function == kMetaLaunch) return false;
    const std::uint64_t bytes = amount(view_, r.function, r.bucket, r.dtype, r.comm, r.count).bytes;
    bool chosen = false;
    each_sizes(bounded_text(head.sizes),
               [&](const Sizes& sizes) { chosen = chosen || sizes.holds(bytes); });
    return chosen;
  }
  bool is_named(std::uint8_t function, Bucket bucket) const {
    const std::string_view ops = bounded_text(view_.head().ops);
    if (ops.empty()) return true;
    const Function* f = view_.function(function);
    if (f == nullptr) return false;
    bool named = false;
    each_item(ops, [&](std::string_view op) {
      named = named || matches(op, bounded_text(f->name)) || matches(op, bucket_name(bucket));
      return true;
    });
    return named;
  }

  // Counts the text behind `before` as `written`, or takes it back.
  bool within_quota(Text& out, std::size_t before, std::uint64_t& written,
                    std::uint64_t divisor) const {
    const std::uint64_t bytes = out.size() - before;
    const std::uint64_t quota = view_.head().quota;
    const bool fits = quota == 0 || written + bytes <= quota / divisor;
    fits ? void(written += bytes) : out.cut(before);
    return fits;
  }

  void record(Text& out, Progress& p, const Record& r, std::uint32_t i, std::uint64_t& events) {
    if (r.function == kMetaVoid) return;
    if (r.function == kMetaThread || r.function == kMetaRangeLane) {
      const auto tid = static_cast<std::uint32_t>(r.count);
      char name[kThreadNameBytes + 1] = {};
      std::memcpy(name, &r.stream, kThreadNameBytes);
      if (r.function == kMetaRangeLane) return range_lane_line(out, view_, tid, name);
      p.tid[i] = tid;
      for (WindowFile& file : p.window_file) {
        const std::uint64_t others = ~(std::uint64_t{1} << i % 64);
        file.thread_named[i / 64] &= others;
        file.range_lane_named[i / 64] &= others;
      }
      return thread_name_line(out, view_, tid, name);
    }
    if (r.function == kMetaRangeMore) return;  // of a damaged file
    if (r.function == kMetaDevice || r.function == kMetaDeviceClock) return device(out, p, r);
    if (r.function == kMetaBusy) return busy(out, p, r);
    if (r.function == kMetaLife) {  // few, and of the whole run: whatever has lines
      tables(out, p);
      const std::size_t before = out.size();
      life_line(out, view_, r, p.tid[i], false);
      within_quota(out, before, p.lines_bytes, 1);
      return;
    }
    const std::uint32_t window = window_of_record(r);
    if (window == 0) {
      if (r.function != kMetaGroup) ++p.dropped[static_cast<std::size_t>(Dropped::window)];
      return;
    }
    if (r.function != kMetaGroup && !is_chosen(r)) {
      ++p.dropped[static_cast<std::size_t>(Dropped::filter)];
      return;
    }
    tables(out, p);  // a communicator's line comes before its first use, and a stream's
    const Place at = place(out, p, window);
    if (at.file != nullptr) table_lines(at.out, view_, sums_, at.tables, false);
    const std::uint32_t number = r.function == kMetaGroup ? 0 : stream(out, p, at, r.stream);
    if (at.file != nullptr) name_thread_lane(at.out, view_, p, *at.file, i, false);
    const std::size_t before = at.out.size();
    if (r.function == kMetaGroup) {
      group_line(at.out, view_, r, p.tid[i]);
    } else if (r.function == kMetaLaunch) {
      launch_line(at.out, view_, r, p.tid[i], number);
    } else {
      call_line(at.out, view_, r, p.tid[i], number, false);
    }
    const bool fits = within_quota(at.out, before, at.lines_bytes, 1);
    if (r.function == kMetaGroup) return;
    ++(fits ? events : p.dropped[static_cast<std::size_t>(Dropped::quota)]);
    if (!fits || at.file == nullptr) return;
    ++at.file->lines;
    ++p.window_lines;
  }

  // These lines stand beside those of calls and are no events: behind the quota they are left out
  // and counted nowhere.
  void device(Text& out, Progress& p, const Record& r) {
    if (r.function == kMetaDeviceClock) {
      const std::size_t before = out.size();
      device_clock_line(out, view_, r);
      within_quota(out, before, p.lines_bytes, 1);
      return;
    }
    const std::uint32_t window = window_of_record(r);
    if (window == 0 || !is_named(r.dtype, r.bucket)) return;  // its call has no line either
    tables(out, p);
    const Place at = place(out, p, window);
    if (at.file != nullptr) table_lines(at.out, view_, sums_, at.tables, false);
    const std::uint32_t number = stream(out, p, at, r.stream);
    name_device_lane(out, view_, p.tables, number);
    if (at.file != nullptr) name_device_lane(at.out, view_, at.tables, number);
    const std::size_t before = at.out.size();
    device_line(at.out, view_, r, number);
    within_quota(at.out, before, at.lines_bytes, 1);
  }

  struct Busy {
    std::uint64_t from_ns;
    std::uint64_t to_ns;
    std::uint32_t device;
    bool unsure;
  };
  // When a device computed, cut to the window. If it was idle before up to a window's end, that
  // gets a line of length 0.
  void busy(Text& out, Progress& p, const Record& r) {
    if (no_lines() || r.comm == 0) return;
    const Windows& windows = view_.head().windows;
    const std::uint32_t idle = window_at(windows, r.count);
    if (idle != 0 && idle != kAlways) {
      const std::uint64_t to_ns = window_of(view_, idle).to_ns.load(std::memory_order_acquire);
      if (to_ns <= r.start_ns) busy(out, p, idle, {to_ns, to_ns, r.comm - 1U, true});
    }
    const std::uint32_t window = window_of_record(r);
    Busy busy_in{r.start_ns, r.start_ns + r.dur_ns, r.comm - 1U, r.captured != 0};
    if (window == 0) return;
    if (window != kAlways) {
      const Window& w = window_of(view_, window);
      busy_in.from_ns = std::max(busy_in.from_ns, w.from_ns.load(std::memory_order_acquire));
      busy_in.to_ns = std::min(busy_in.to_ns, w.to_ns.load(std::memory_order_acquire));
    }
    busy(out, p, window, busy_in);
  }
  void busy(Text& out, Progress& p, std::uint32_t window, const Busy& b) {
    // The device was idle where no line is: behind one that had no room none comes any more,
    // however short it is.
    constexpr std::uint64_t kMostBytes = 256;
    const Place at = place(out, p, window);
    const std::uint64_t quota = view_.head().quota;
    if (b.to_ns < b.from_ns || (quota != 0 && at.lines_bytes + kMostBytes > quota)) return;
    if (at.file != nullptr) table_lines(at.out, view_, sums_, at.tables, false);
    name_busy_lane(at.out, view_, at.tables, b.device);
    const std::size_t before = at.out.size();
    busy_line(at.out, view_, b.device, b.from_ns, b.to_ns, b.unsure);
    at.lines_bytes += at.out.size() - before;
  }

  std::size_t size_of(const Text& out) const {
    std::size_t size = out.size();
    if (files_ == nullptr) return size;
    for (std::uint32_t i = 0; i < kWindowFiles; ++i) size += files_[i].size();
    return size;
  }

  View view_;
  Sink sink_;
  Sums sums_;
  Text* files_ = nullptr;
  bool file_wanted_ = false;
};

}  // namespace tprof
