// The sinks of the writer, and their list.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/lock.h"
#include "interpose/format/metrics.h"
#include "interpose/format/snapshot.h"
#include "interpose/format/windows.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/metric_lanes.h"

namespace tprof {

// The values that a session begins with.
struct SinkStart {
  int snapshot;  // the file beside the rank file, or -1
  MetricsWanted metrics;
  std::uint64_t now_ns;
};

// A task of the writer besides the lines of calls. These are all the hooks; a sink hides the ones
// that it needs.
struct Sink {
  void begin(LineBatch& /*lines*/, const SinkStart& /*start*/) {}
  // Whenever lines of calls are written, and at the latest after sleep_ms().
  void tick(LineBatch& /*lines*/, const ClockAnchor& /*now*/) {}
  std::uint32_t sleep_ms(std::uint64_t /*now_ns*/) const { return UINT32_MAX; }
  // All calls have their lines, and the rank file's end is next.
  void at_end(LineBatch& /*lines*/, std::uint64_t /*now_ns*/) {}
  // For a forked child: files belong to the parent.
  void leave() {}
};

// Ledgers of ended epochs, written before the next ledger.
class EndedEpochs : public Sink {
 public:
  // May be called on any thread.
  void add(std::string_view ledger) {
    const LockGuard guard(lock_);
    ended_ << ledger;
    ++epochs_;
  }
  void tick(LineBatch& lines, const ClockAnchor& /*now*/) { write(lines); }
  void write(LineBatch& lines) {
    {
      const LockGuard guard(lock_);
      if (epochs_ == 0) return;
      lines.begin();
      lines.out() << ended_.view();
      lines.next.epoch += std::exchange(epochs_, 0);
      ended_.clear();
    }
    lines.flush();
  }

 private:
  Lock lock_{LockOrder::ended};  // never held during a write
  Text ended_;
  std::uint32_t epochs_ = 0;
};

inline std::uint64_t nanoseconds(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_usec) * 1'000;
}

// The lanes of the process's metrics (TPROF_METRICS), in the open window.
class MetricsSink : public Sink {
 public:
  // Takes the first reading at once: growth is counted from it.
  void begin(LineBatch& lines, const SinkStart& start) {
    if (start.metrics.every_ns == 0) return;
    every_ns_ = start.metrics.every_ns;
    next_ns_ = start.now_ns;
    status_ = open_file("/proc/self/status", O_RDONLY);
    io_ = open_file("/proc/self/io", O_RDONLY);
    tick_at(lines, start.now_ns);
  }
  void tick(LineBatch& lines, const ClockAnchor& now) { tick_at(lines, now.mono_ns); }
  std::uint32_t sleep_ms(std::uint64_t now_ns) const {
    const std::uint64_t ms = next_ns_ <= now_ns ? 1 : (next_ns_ - now_ns) / 1'000'000 + 1;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(ms, UINT32_MAX));
  }
  // Another reading is useless soon after the last one.
  void at_end(LineBatch& lines, std::uint64_t now_ns) {
    const bool soon = last_.at_ns != kNotRead && now_ns - last_.at_ns < kShortestMetricsNs;
    if (every_ns_ != 0 && !soon) read(lines, now_ns);
  }
  void leave() {
    for (OwnFile* file : {&status_, &io_}) {
      if (file->still_ours()) close(file->fd);
      *file = {};
    }
  }

 private:
  void tick_at(LineBatch& lines, std::uint64_t now_ns) {
    if (now_ns < next_ns_) return;
    next_ns_ += ((now_ns - next_ns_) / every_ns_ + 1) * every_ns_;
    read(lines, now_ns);
  }

  // Reads nothing while no window is open. Growth between two windows is in neither.
  void read(LineBatch& lines, std::uint64_t now_ns) {
    const std::uint32_t window = window_at(lines.view.head().windows, now_ns);
    const bool goes_on = window == window_;
    window_ = window;
    if (window == 0) return;
    const ProcessMetrics before = std::exchange(last_, {.at_ns = tprof::now_ns()});
    read_usage(last_);
    metrics::parse_status(text_of(status_), last_);
    metrics::parse_io(text_of(io_), last_);
    lines.put([&](Text&) {
      metrics::each_lane(goes_on ? &before : nullptr, last_, "",
                         [&](const Counter& c) { lines.metric(c, last_.at_ns); });
    });
  }

  // The CPU time of all threads; getrusage is finer than the clock ticks of /proc/self/stat.
  static void read_usage(ProcessMetrics& to) {
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    to.user_ns = nanoseconds(usage.ru_utime);
    to.system_ns = nanoseconds(usage.ru_stime);
    to.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  }
  // Empty if the program has closed the file.
  std::string_view text_of(const OwnFile& file) {
    return file.still_ours() ? metrics::whole_text(file.fd, buffer_) : std::string_view();
  }

  std::uint64_t next_ns_ = UINT64_MAX;  // never
  std::uint64_t every_ns_ = 0;
  std::uint32_t window_ = 0;
  ProcessMetrics last_;
  // They stay open: a program that closes its lowest descriptors relies on the numbers of its next
  // open().
  OwnFile status_, io_;
  char buffer_[std::size_t{16} << 10];  // enough for 1,500 groups
};

// The program's allocated memory (TPROF_MEMORY), as lanes in the open window: a value whenever it
// has changed, and all at a window's beginning.
class MemorySink : public Sink {
 public:
  void tick(LineBatch& lines, const ClockAnchor& now) { show(lines, now.mono_ns); }
  void at_end(LineBatch& lines, std::uint64_t now_ns) { show(lines, now_ns); }

 private:
  void show(LineBatch& lines, std::uint64_t now_ns) {
    const Head& head = lines.view.head();
    const std::uint32_t window = window_at(head.windows, now_ns);
    if (window == 0 || head.memory_known.load(std::memory_order_acquire) == 0) return;
    bool any = false;
    lines.begin();
    for (std::uint8_t place = 0; place < kMemoryPlaces; ++place) {
      const std::uint64_t bytes = head.memory[place].bytes.load(std::memory_order_acquire);
      const bool known = window == window_ && shown_[place] != 0;
      if (known ? bytes == shown_[place] - 1 : head.memory[place].peak.load() == 0) continue;
      shown_[place] = bytes + 1;
      Counter c{};
      char room[16];
      metrics::add_name(c, kMemoryLane);
      metrics::add_name(c, memory_key(place, room));
      c.values = 1;
      c.value[kMaxCounterValues - 1] = static_cast<double>(bytes);
      lines.metric(c, now_ns);
      any = true;
    }
    window_ = window;
    if (any) lines.flush();
  }

  std::uint64_t shown_[kMemoryPlaces] = {};  // last value + 1; 0: none yet
  std::uint32_t window_ = 0;
};

// True if the wall clock was set between the two. Drift and slewing may be 500 ppm each.
inline bool stepped(const ClockAnchor& from, const ClockAnchor& to) {
  const std::uint64_t mono = to.mono_ns - from.mono_ns;
  const auto difference = static_cast<std::int64_t>(to.real_ns - from.real_ns - mono);
  const auto allowed =
      static_cast<std::int64_t>(1'000'000 + mono / 1000 + from.bracket_ns + to.bracket_ns);
  return difference > allowed || difference < -allowed;
}

inline std::uint64_t transactions(const View& view) {
  std::uint64_t sum = 0;
  view.each_thread([&](const ThreadArea& t, std::uint32_t) {
    sum += t.committed.load(std::memory_order_relaxed);
  });
  return sum;
}

// The cumulative ledgers that a process writes while it runs, and clock lines.
class Ledgers : public Sink {
 public:
  void begin(LineBatch& /*lines*/, const SinkStart& start) {
    last_ns_ = start.now_ns;
    last_clock_ = clock_anchor();
  }
  // Writes a ledger if there were calls since the last one and its interval has passed. Otherwise,
  // if the wall clock was set, writes a clock line.
  void tick(LineBatch& lines, const ClockAnchor& now) {
    const std::uint64_t made = transactions(lines.view);
    if (now.mono_ns - last_ns_ >= every_ns_ && made != last_transactions_) {
      last_transactions_ = made;
      every_ns_ = std::min(2 * every_ns_, kLongestNs);
      write(lines, now, "interval");
    } else if (stepped(last_clock_, now)) {
      lines.put([&](Text& out) { clock_line(out, lines.view, now); });
      last_clock_ = now;
    }
  }
  void write(LineBatch& lines, const ClockAnchor& clock, std::string_view reason) {
    last_ns_ = clock.mono_ns;
    last_clock_ = clock;
    lines.put([&](Text& out) {
      clock_line(out, lines.view, clock);
      lines.ledger(clock.mono_ns, reason, false);
      lines.needs_to_close(out.size());
    });
  }

 private:
  // The contract's intervals. Ledgers come often at first, when most things go wrong; a day has
  // 150.
  static constexpr std::uint64_t kFirstNs = 10'000'000'000;
  static constexpr std::uint64_t kLongestNs = 600'000'000'000;

  std::uint64_t last_ns_ = 0;
  std::uint64_t every_ns_ = kFirstNs;
  ClockAnchor last_clock_{};
  std::uint64_t last_transactions_ = 0;
};

// Writes the file of format/snapshot.h: what recovery would add to the rank file if the process
// died now.
class Snapshot : public Sink {
 public:
  void begin(LineBatch& lines, const SinkStart& start);
  void tick(LineBatch& lines, const ClockAnchor& now);

 private:
  // True if a snapshot is due: there were calls and the last snapshot is 10 s old; or a call has
  // been open for a second, and may be a hang; or nothing has changed for 10 s, 20 s, 40 s, then
  // each minute, to show that the process lives.
  bool due(const View& view, std::uint64_t now_ns);
  // Writes a snapshot: `text` continues the rank file after `cut` bytes. If it can't be written,
  // the previous one stays valid.
  void write(std::string_view text, std::uint64_t cut);

  OwnFile file_;
  SnapshotEntry entry_{};  // the valid entry
  std::uint64_t written_ns_ = 0;
  std::uint64_t every_ns_ = 0;  // while nothing changes
  std::uint64_t changes_ = 0;   // changes_in() at the last snapshot
  std::uint64_t stood_ns_ = 0;  // start of the latest call open for a second
};

// All sinks, in the order of their turns.
using Sinks = std::tuple<EndedEpochs,  // ended by `tprof ctl reset` and programs
                         Snapshot, MetricsSink, MemorySink, Ledgers>;

}  // namespace tprof
