// Turns rings into lines: writes a line for each closed record that has none yet, within the quota.
// Runs on the writer's thread with the live mapping, and in readers with the mapping of a dead
// process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "interpose/format/metrics.h"
#include "interpose/format/setting_values.h"
#include "interpose/write/ledger_lines.h"
#include "interpose/write/lines.h"
#include "interpose/write/range_lines.h"
#include "interpose/write/window_lines.h"

namespace tprof {

// Lines of what calls' lines refer to: communicators, sites, graphs, streams and lanes. Each file
// has them once, before the first reference. Writes the communicators after `done`. `world`: the
// size of the largest one so far, whose rank is the process's.
[[gnu::cold]] inline void communicator_lines(Text& out, const View& view, std::uint32_t& done,
                                             std::int32_t& world) {
  const Head& head = view.head();
  const std::uint32_t comms = View::entries(head.comms);
  while (done < comms) {
    comm_line(out, view, ++done);
    const Communicator* larger = head.rank_known ? nullptr : larger_comm(view, done, world);
    if (larger == nullptr) continue;
    world = larger->nranks;
    identity_line(out, view, *larger);
  }
}

// Writes the lines that the file does not have yet. `last`: includes captures that will not end any
// more.
[[gnu::cold]] inline void table_lines(Text& out, const View& view, Sums& sums, const Progress& p,
                                      FileLines& file, bool last) {
  communicator_lines(out, view, file.comms, file.world);
  const std::uint32_t sites = View::entries(view.head().sites);
  while (file.sites < sites) site_line(out, view, ++file.sites);
  const std::uint32_t streams = std::min(p.streams, kMaxStreams);
  for (; file.streams < streams; ++file.streams) {
    stream_line(out, view, file.streams + 1, p.stream[file.streams]);
  }
  const std::uint32_t graphs = View::entries(view.head().graphs);
  std::uint32_t until = file.graphs;
  const auto complete = [&](std::uint32_t index) {
    const Graph* g = view.graph(index);
    return last || g == nullptr || g->complete.load(std::memory_order_acquire) != 0;
  };
  while (until < graphs && complete(until + 1)) ++until;
  if (until <= file.graphs) return;
  collect_graphs(view, sums, file.graphs + 1);
  if (sums.all.failed()) return out.fail();
  const Total* row = sums.all.begin();
  while (file.graphs < until) graph_line(out, view, row, sums.all.end(), ++file.graphs);
}

// Returns a short number for a handle; 0 for the default stream. table_lines() writes the line of a
// new one.
inline std::uint32_t stream_number(Progress& p, std::uint64_t handle) {
  if (handle == 0) return 0;
  const std::uint32_t known = std::min(p.streams, kMaxStreams);
  for (std::uint32_t i = 0; i < known; ++i) {
    if (p.stream[i] == handle) return i + 1;
  }
  if (known == kMaxStreams) {
    p.streams = kMaxStreams + 1;
    return kStreamUnknown;
  }
  p.stream[known] = handle;
  return p.streams = known + 1;
}

// True the first time: a lane is named once per file.
template <std::size_t N>
bool first_of(std::uint64_t (&named)[N], std::uint32_t lane) {
  const std::uint64_t bit = std::uint64_t{1} << lane % 64;
  const bool first = (named[lane / 64] & bit) == 0;
  named[lane / 64] |= bit;
  return first;
}

// Names the lane of thread `i`, or of its ranges, in a window's file that does not have the name
// yet. (The rank file gets it from the thread's record.)
inline void name_thread_lane(Text& out, const View& view, const Progress& p, FileLines& file,
                             std::uint32_t i, bool ranges) {
  auto& named = ranges ? file.range_lane : file.thread_lane;
  const ThreadArea* t = view.thread(i);
  const std::uint32_t tid = p.tid[i];
  if ((named[i / 64] >> i % 64 & 1) != 0 || t == nullptr || tid == 0) return;
  if (t->named.load(std::memory_order_acquire) != tid) return;
  char name[kThreadNameBytes + 1] = {};
  std::memcpy(name, t->name, kThreadNameBytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (t->named.load(std::memory_order_relaxed) != tid) return;
  first_of(named, i);
  ranges ? range_lane_line(out, view, tid, name) : thread_name_line(out, view, tid, name);
}

class Drain {
 public:
  explicit Drain(const View& of) : view(of) {}

  // Appends the lines of all closed records to the texts, and moves `next` past them. Returns false
  // if there may be more: there is 1 MiB of text, or a window's file has to be completed (see
  // file_wanted()). `until`: the limit of each thread's records; null: none. Calls seen(record,
  // thread) for each record except those of ranges and counters.
  template <typename Seen>
  bool run(const std::uint64_t* until, Seen&& seen) {
    file_wanted_ = false;
    if (!view.head().windows.files) windows(WindowLines::ended);
    tables(kRankFile);  // for everything that its lines may refer to
    for (std::uint32_t i = 0; i < view.threads(); ++i) {
      const ThreadArea* t = view.thread(i);
      if (t != nullptr && !thread(*t, i, until == nullptr ? UINT64_MAX : until[i], seen)) {
        file_wanted_ = false;  // only after all threads' lines of the older windows
        return false;
      }
    }
    return !file_wanted_;
  }
  bool run() {
    return run(nullptr, [](const Record&, const ThreadArea&) {});
  }

  // True if the oldest window's file has to be completed before the drain goes on.
  bool file_wanted() const { return file_wanted_; }

  // Writes the lines of windows that are over.
  void windows(WindowLines far) { window_lines(out(), view, next.written, far); }

  // Writes lines of open calls and ranges. `last`: these, and ongoing captures, will not end any
  // more.
  void open_calls(bool last) {
    windows(last ? WindowLines::all : WindowLines::ended);
    tables(kRankFile, last);
    each_open_call(view, [&](const Record& r, const ThreadArea& t) {
      if (view.function(r.function) == nullptr) return;
      const std::uint32_t stream = stream_number(next, r.stream);
      tables(kRankFile, last);
      call_line(out(), view, r, t.tid.load(std::memory_order_relaxed), stream, true);
    });
    each_phase(view,
               [&](const Record& r, std::uint32_t tid) { life_line(out(), view, r, tid, true); });
    std::uint64_t id = next.written.ranges;
    each_open_range(view, [&](const OpenRange& r, bool started) {
      unfinished_range_line(out(), view, r, started ? ++id : 0);
    });
  }

  // Writes a metric at the present time, into the open window if there are windows. Stops at the
  // quota of metrics.
  void metric(const Counter& counter, std::uint64_t at_ns) {
    const std::uint32_t window = window_of(at_ns);
    if (window == 0) return;
    has_file(window);
    line(place(window).out, next.written.metric_bytes, kMetricsQuotaDivisor,
         [&](Text& to) { counter_line(to, view, counter, at_ns, 0); });
  }

  void ledger(std::uint64_t now_ns, std::string_view reason, bool count_open_calls) {
    ledger_line(out(), view, sums_, now_ns, next.epoch, reason, count_open_calls);
  }

  // Writes the end of the rank file. `last`: no call will return any more. Communicators are
  // repeated after the ledger, for readers of only the beginning and the end of the file.
  void end(std::uint64_t now_ns, bool last, Complete complete) {
    ledger(now_ns, last ? "close" : "interval", last);
    std::uint32_t from = 0;
    std::int32_t world = 0;
    communicator_lines(out(), view, from, world);
    footer_line(out(), view, sums_, next, complete);
  }

  Text& out() { return text[kRankFile]; }

  View view;
  Text text[kLineFiles];  // for the files of `next`
  Progress next{};        // the progress once these are written

 protected:
  template <std::size_t N, typename Reason>
  static void drop(std::uint64_t (&dropped)[N], Reason reason, std::uint64_t how_many = 1) {
    dropped[static_cast<std::size_t>(reason)] += how_many;
  }

 private:
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

  struct Place {
    Text& out;
    FileLines& file;
  };
  // Returns where the lines of a window go, after writing the lines that they may refer to.
  Place place(std::uint32_t window) {
    const std::size_t n = file_of_window(next.written, window);
    const bool open = n < kLineFiles && next.written.file[n].complete == 0;
    return tables(open ? n : kRankFile);
  }
  Place tables(std::size_t n, bool last = false) {
    table_lines(text[n], view, sums_, next, next.written.file[n], last);
    return {text[n], next.written.file[n]};
  }

  // Makes a file for a window if it should have one. Returns false if another one has to be
  // completed first.
  bool has_file(std::uint32_t window) {
    WrittenLines& w = next.written;
    if (!view.head().windows.files || window <= w.windows) return true;
    if (file_of_window(w, window) < kLineFiles) return true;
    if (const std::size_t n = file_of_window(w, 0); n < kLineFiles) {
      w.file[n] = {};
      w.file[n].window = window;
      w.file[n].step = window_numbered(view, window).first_step.load(std::memory_order_relaxed);
      window_file_header(text[n], view, view.header(), w.file[n]);
      ++w.window_files;
      return true;
    }
    file_wanted_ = file_wanted_ || oldest_window_file(w) < kLineFiles;
    return !file_wanted_;
  }

  // Return the window of a record's line. 0: the line, if any, is in no window.
  std::uint32_t window_of(std::uint64_t ns) const {
    return no_lines() ? 0 : window_at(view.head().windows, ns);
  }
  std::uint32_t window_of(const Record& r) const {
    switch (r.function) {
      case kMetaVoid:
      case kMetaThread:
      case kMetaRangeLane:
      case kMetaRangeMore:
      case kMetaDeviceClock:
      case kMetaLife:
        return 0;
      case kMetaBusy:
        return no_lines() ? 0 : window_in(view.head().windows, r.start_ns, r.start_ns + r.dur_ns);
      case kMetaDevice:
        return window_of(r.count);  // its call's
      default:
        return window_of(r.start_ns);
    }
  }

  template <typename Seen>
  bool thread(const ThreadArea& t, std::uint32_t i, std::uint64_t until, Seen&& seen) {
    const RingNow ring = view.ring_now(t);
    if (ring.record == nullptr) return true;
    std::uint64_t& tail = next.tail[i];
    if (ring.overrun(tail)) tail = ring.head;
    while (tail < ring.head && tail < until) {
      const Record r = ring[tail];
      if (!ring.closed(r)) break;
      if (size() >= kBatchBytes) return false;
      if (!has_file(window_of(r))) break;
      ++tail;
      if (r.function == kMetaRange || r.function == kMetaCounter) {
        range_or_counter(r, ring, i);
      } else {
        seen(r, t);
        record(r, i);
      }
    }
    return true;
  }

  // They may continue in the records after the first one.
  void range_or_counter(const Record& first, const RingNow& ring, std::uint32_t i) {
    RangeRecord r;
    std::memcpy(&r, &first, sizeof r);
    OpenRange range{};
    Counter counter{};
    const bool is_range = first.function == kMetaRange;
    const bool whole = is_range ? read_range(ring, r, next.tail[i], range)
                                : read_counter(ring, r, next.tail[i], counter);
    if (!whole || no_lines()) return;  // without lines they serve only to find steps
    const std::uint32_t window = window_of(first);
    if (window == 0) return drop(next.range_dropped, RangeDropped::window);
    const Place at = place(window);
    name_thread_lane(at.out, view, next, at.file, i, true);
    const bool fits = line(at.out, at.file.range_bytes, kRangeQuotaDivisor, [&](Text& to) {
      is_range ? range_line(to, view, range, static_cast<RangeKind>(r.kind), r.dur_ns,
                            next.written.ranges + 1)
               : counter_line(to, view, counter, r.start_ns, kRangeLane + r.tid);
    });
    fits ? void(++next.written.ranges) : drop(next.range_dropped, RangeDropped::quota);
  }

  bool no_lines() const { return view.head().events == EventLines::off; }

  // True if TPROF_OPS and TPROF_SIZES select the call. They do not apply to graph launches.
  bool is_chosen(const Record& r) const {
    if (!is_named(r.function, r.bucket)) return false;
    const Head& head = view.head();
    if (head.sizes[0] == '\0') return true;
    if (r.function == kMetaLaunch) return false;
    const std::uint64_t bytes = amount(view, r.function, r.bucket, r.dtype, r.comm, r.count).bytes;
    bool chosen = false;
    each_sizes(bounded_text(head.sizes),
               [&](const Sizes& sizes) { chosen = chosen || sizes.holds(bytes); });
    return chosen;
  }
  bool is_named(std::uint8_t function, Bucket bucket) const {
    const std::string_view ops = bounded_text(view.head().ops);
    if (ops.empty()) return true;
    const Function* f = view.function(function);
    if (f == nullptr) return false;
    bool named = false;
    each_item(ops, [&](std::string_view op) {
      named = named || matches(op, bounded_text(f->name)) || matches(op, bucket_name(bucket));
      return true;
    });
    return named;
  }

  // Writes a line with put(text) and counts its bytes as `written`. Returns false if its part of
  // the quota has no room.
  template <typename Put>
  bool line(Text& to, std::uint64_t& written, std::uint64_t divisor, Put&& put) {
    const std::size_t before = to.size();
    put(to);
    const std::uint64_t bytes = to.size() - before;
    const std::uint64_t quota = view.head().quota;
    const bool fits = quota == 0 || written + bytes <= quota / divisor;
    fits ? void(written += bytes) : to.cut(before);
    return fits;
  }
  template <typename Put>
  bool event_line(const Place& at, Put&& put) {
    return line(at.out, at.file.event_bytes, 1, put);
  }

  // Lines of clocks, lives, groups and device times supplement those of calls and do not count as
  // events: beyond the quota they are left out without counting them.
  void record(const Record& r, std::uint32_t i) {
    switch (r.function) {
      case kMetaVoid:
      case kMetaRangeMore:  // of a damaged file
        return;
      case kMetaThread:
      case kMetaRangeLane:
        return thread_lane(r, i);
      case kMetaDeviceClock:
        event_line(tables(kRankFile), [&](Text& to) { device_clock_line(to, view, r); });
        return;
      case kMetaLife:  // few, and written for the whole run
        event_line(tables(kRankFile),
                   [&](Text& to) { life_line(to, view, r, next.tid[i], false); });
        return;
      case kMetaBusy:
        return busy(r);
      case kMetaDevice:
        return device(r);
      case kMetaGroup:
        if (const std::uint32_t window = window_of(r); window != 0) {
          const Place at = place(window);
          name_thread_lane(at.out, view, next, at.file, i, false);
          event_line(at, [&](Text& to) { group_line(to, view, r, next.tid[i]); });
        }
        return;
      default:
        return call(r, i);
    }
  }

  void call(const Record& r, std::uint32_t i) {
    const std::uint32_t window = window_of(r);
    if (window == 0) return drop(next.dropped, Dropped::window);
    if (!is_chosen(r)) return drop(next.dropped, Dropped::filter);
    const std::uint32_t stream = stream_number(next, r.stream);
    const Place at = place(window);
    name_thread_lane(at.out, view, next, at.file, i, false);
    const bool fits = event_line(at, [&](Text& to) {
      r.function == kMetaLaunch ? launch_line(to, view, r, next.tid[i], stream)
                                : call_line(to, view, r, next.tid[i], stream, false);
    });
    if (!fits) return drop(next.dropped, Dropped::quota);
    ++next.written.calls;
    ++at.file.calls;
    if (at.file.window != 0) ++next.written.window_calls;
  }

  // Names the ring's thread from here on, or the lane of its ranges.
  void thread_lane(const Record& r, std::uint32_t i) {
    const auto tid = static_cast<std::uint32_t>(r.count);
    char name[kThreadNameBytes + 1] = {};
    std::memcpy(name, &r.stream, kThreadNameBytes);
    const std::uint64_t bit = std::uint64_t{1} << i % 64;
    FileLines& rank_file = next.written.file[kRankFile];
    if (r.function == kMetaRangeLane) {
      rank_file.range_lane[i / 64] |= bit;
      return range_lane_line(out(), view, tid, name);
    }
    next.tid[i] = tid;
    for (FileLines& file : next.written.file) {
      file.thread_lane[i / 64] &= ~bit;
      file.range_lane[i / 64] &= ~bit;
    }
    rank_file.thread_lane[i / 64] |= bit;
    thread_name_line(out(), view, tid, name);
  }

  void device(const Record& r) {
    const std::uint32_t window = window_of(r);
    if (window == 0 || !is_named(r.dtype, r.bucket)) return;  // its call has no line either
    const std::uint32_t stream = stream_number(next, r.stream);
    const Place at = place(window);
    const std::uint32_t lane = stream == kStreamUnknown ? kMaxStreams + 1 : stream;
    if (first_of(at.file.stream_lane, lane)) device_lane_line(at.out, view, lane);
    event_line(at, [&](Text& to) { device_line(to, view, r, stream); });
  }

  // Writes when a device computed, cut to the window. If it was idle until a window's end, writes a
  // line of length 0.
  void busy(const Record& r) {
    if (no_lines() || r.comm == 0) return;
    const std::uint32_t idle = window_of(r.count);
    if (idle != 0 && idle != kAlways) {
      const std::uint64_t to_ns = window_numbered(view, idle).to_ns.load(std::memory_order_acquire);
      if (to_ns <= r.start_ns) busy(idle, r.comm - 1U, to_ns, to_ns, true);
    }
    const std::uint32_t window = window_of(r);
    if (window == 0) return;
    std::uint64_t from_ns = r.start_ns;
    std::uint64_t to_ns = r.start_ns + r.dur_ns;
    if (window != kAlways) {
      const Window& w = window_numbered(view, window);
      from_ns = std::max(from_ns, w.from_ns.load(std::memory_order_acquire));
      to_ns = std::min(to_ns, w.to_ns.load(std::memory_order_acquire));
    }
    if (from_ns <= to_ns) busy(window, r.comm - 1U, from_ns, to_ns, r.captured != 0);
  }
  // No line means that the device was idle, so after one without room no more are written, however
  // short.
  void busy(std::uint32_t window, std::uint32_t device, std::uint64_t from_ns, std::uint64_t to_ns,
            bool unsure) {
    constexpr std::uint64_t kMostBytes = 256;
    const Place at = place(window);
    const std::uint64_t quota = view.head().quota;
    if (quota != 0 && at.file.event_bytes + kMostBytes > quota) return;
    if (device < 64 && first_of(at.file.device_lane, device)) {
      busy_lane_line(at.out, view, device);
    }
    event_line(at, [&](Text& to) { busy_line(to, view, device, from_ns, to_ns, unsure); });
  }

  std::size_t size() const {
    std::size_t size = 0;
    for (const Text& t : text) size += t.size();
    return size;
  }

  Sums sums_;
  bool file_wanted_ = false;
};

}  // namespace tprof
