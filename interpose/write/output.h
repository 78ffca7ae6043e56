// Writes all that comes out of a session, calls' lines and sinks', and closes the rank file. It
// serves one caller at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "interpose/write/line_batch.h"
#include "interpose/write/sinks.h"
#include "interpose/write/steps.h"

namespace tprof {

class Output {
 public:
  // `view` must outlive the object.
  explicit Output(const View& view) : lines_(view), steps_(view) {}
  // `fd`: the rank file, which has its first lines; `snapshot`: the file beside it, or -1.
  void begin(int fd, int snapshot = -1, const MetricsWanted& wanted = {});

  // Writes everything that is closed by now to the file, in batches of 1 MiB. True: there is more.
  // A batch that does not fit is left out, and its events are counted as lost.
  bool drain_batch();
  // Does the same for everything, while there is time. Lines that are still missing when time is up
  // count as lost, like those that a disk refuses. Threads that go on calling do not keep us here.
  void drain_rest(std::uint64_t until_ns);
  // Tells the sign of life, and lets the sinks do what is due.
  void tick();
  // Returns how long until tick() should be called again.
  std::uint32_t sleep_ms();
  // May be called on any thread: an epoch has ended with this ledger, which is written before the
  // next one.
  void end_epoch(std::string_view ledger) { std::get<EndedEpochs>(sinks_).add(ledger); }
  // Writes the ledger now.
  void dump();
  // Writes lines of the session's own, by put(text, view).
  template <typename Put>
  void put(Put&& put) {
    lines_.begin();
    put(lines_.out(), lines_.view);
    lines_.flush();
  }
  // Writes the ledger, communicators, footer and the end of the array, beyond the committed offset.
  // Calls that come later are written over them, and the end again after those. False: it did not
  // fit, and what was there stays.
  bool end();

  // Takes the end back: what comes next is written over it.
  void reopen() { lines_.reopen(); }

  bool ended() const { return lines_.committed().closed != 0; }

  // A forked child calls this, since the files are the parent's.
  void leave();

  void cost(std::uint64_t cpu_ns) { lines_.cost(cpu_ns); }  // so far

 private:
  bool drain(const std::uint64_t* last, bool written);
  template <typename F>
  void each_sink(F&& f) {
    std::apply([&](auto&... sink) { (f(sink), ...); }, sinks_);
  }

  LineBatch lines_;
  Steps steps_;
  Sinks sinks_;
  std::uint64_t last_[kMaxThreads] = {};  // each thread's records up to here are drained at the end
};

}  // namespace tprof
