// Writes a session's output, the lines of calls and of sinks, and closes the rank file. One caller
// at a time.
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

  // Writes a batch, at most 1 MiB, of what is closed by now. Returns true if there is more. If a
  // batch does not fit, its events count as lost.
  bool drain_batch();
  // Writes everything until `until_ns`. Lines not written by then count as lost, as do lines that
  // the disk refuses. Threads that go on making calls do not delay this.
  void drain_rest(std::uint64_t until_ns);
  // Updates the sign of life, and lets the sinks do what is due.
  void tick();
  // Returns how long until tick() should be called again.
  std::uint32_t sleep_ms();
  // An epoch has ended with this ledger, which is written before the next one. Any thread may call
  // this.
  void end_epoch(std::string_view ledger) { std::get<EndedEpochs>(sinks_).add(ledger); }
  // Writes the ledger now.
  void dump();
  // Writes lines of the session with put(text, view).
  template <typename Put>
  void put(Put&& put) {
    lines_.put([&](Text& out) { put(out, lines_.view); });
  }
  // Writes the ledger, communicators, footer and the end of the array after the committed offset.
  // Later calls overwrite them, followed by a new end. Returns false, and changes nothing, if it
  // did not fit.
  bool end();

  // For a forked child: the files belong to the parent.
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
  std::uint64_t last_[kMaxThreads] = {};  // the end drains each thread's records up to here
};

}  // namespace tprof
