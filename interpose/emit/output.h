// Decides what goes into the rank file, and when it counts as written. It serves one caller at a
// time.
#pragma once

#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/lock.h"
#include "interpose/base/text.h"
#include "interpose/emit/snapshot.h"
#include "interpose/windows/window_files.h"
#include "interpose/format/ring_file.h"
#include "interpose/lines/drain.h"
#include "interpose/metrics/memory_lanes.h"
#include "interpose/metrics/sampler.h"
#include "interpose/steps/steps.h"

namespace tprof {

// Room for the lines that close a file. It is kept free of all others, so that a disk that fills up
// costs lines and not the counts.
inline constexpr std::uint64_t kClosingBytes = 64 << 10;
inline constexpr std::uint64_t kClosingBytesOfComm = 512;  // its line and its part of the ledger

class Output {
 public:
  // `fd`: the rank file; `offset`: bytes that are in it. `view` must outlive the object.
  // `snapshot`: the file beside it, or -1.
  Output(const View& view, int fd, std::uint64_t offset, int snapshot = -1,
         const MetricsWanted& wanted = {});

  // Writes everything that is closed by now to the file, in batches of 1 MiB. True: there is more.
  // A batch that does not fit is left out, and its events are counted as lost.
  bool drain_batch();
  // Does the same for everything, while there is time. Lines that are still missing when time is up
  // count as lost, like those that a disk refuses. Threads that go on calling do not keep us here.
  void drain_rest(std::uint64_t until_ns);
  // Does what is due. It tells the sign of life, and writes a clock line if the wall clock was set.
  // If calls were made since the last cumulative ledger and its interval has passed, it writes one.
  // It also takes care of the snapshot, of metrics, and of changes of the program's memory.
  void tick();
  // Returns how long until tick() should be called again.
  std::uint32_t sleep_ms() const { return sampler_.sleep_ms(now_ns()); }
  // May be called on any thread: an epoch has ended with this ledger, which is written before the
  // next one.
  void end_epoch(std::string_view ledger);
  // Writes the ledger now.
  void dump();
  // Writes lines of the session's own, by put(text, view).
  template <typename Put>
  void put(Put&& put) {
    begin();
    put(text_, view_);
    flush(0);
  }
  // Writes the ledger, communicators, footer and the end of the array, beyond the committed offset.
  // Calls that come later are written over them, and the end again after those. False: it did not
  // fit, and what was there stays.
  bool end();

  // Takes the end back: what comes next is written over it.
  void reopen();

  bool ended() const { return progress_.closed != 0; }

  // A forked child calls this, since the files are the parent's.
  void leave() {
    files_.leave();
    sampler_.after_fork();
  }

  void add_cost(std::uint64_t cpu_ns) { progress_.self_ns += cpu_ns; }

 private:
  // Starts lines that are to follow what is committed.
  void begin() {
    next_ = progress_;
    text_.clear();
    files_.clear();
  }
  void write_ended_epochs();
  void ledger(const ClockAnchor& clock, std::string_view reason);
  bool drain(const std::uint64_t* last, bool written);
  enum class Which { oldest, late, all };
  void complete_windows(Which which);
  void snapshot(std::uint64_t now_ns);
  void read_metrics(std::uint64_t now_ns);
  void show_memory(std::uint64_t now_ns);
  void flush(std::uint64_t events);
  void cut_back();
  void look_after_name(std::uint64_t now_ns);
  bool bring_back(std::uint64_t size);
  void lose(std::uint64_t events);
  bool still_ours() const;
  bool reserve(std::uint64_t until);
  std::uint64_t closing_bytes() const;
  void commit(const Progress& next);
  std::uint64_t transactions() const;

  View view_;
  OwnFile file_;
  Drain<Steps> drain_;
  WindowFiles files_;
  Sums sums_;
  Snapshot snapshot_;
  metrics::Sampler sampler_;
  MemoryLanes memory_;
  Text text_;
  Progress progress_{};  // as committed
  Progress next_{};
  std::uint64_t last_[kMaxThreads] = {};  // each thread's records up to here are drained at the end
  std::uint64_t reserved_ = 0;            // the file has its blocks up to here
  bool reserves_ = true;                  // its file system gives them without a write
  std::uint64_t closing_bytes_ = kClosingBytes;
  std::uint64_t last_ledger_ns_;
  std::uint64_t ledger_every_ns_;
  ClockAnchor last_clock_;
  std::uint64_t next_name_ns_ = 0;
  bool nameless_ = false;          // at the last look
  Lock ending_{LockOrder::ended};  // for the next three; never held during a write
  Text ended_[2];
  std::uint32_t fills_ = 0;  // the text being filled; the other is being written
  std::uint32_t ended_epochs_ = 0;
  std::uint64_t last_transactions_ = 0;
};

}  // namespace tprof
