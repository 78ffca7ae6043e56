#include "interpose/write/output.h"

#include <algorithm>
#include <cstring>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"

namespace tprof {

void Output::begin(int fd, int snapshot, const MetricsWanted& wanted) {
  lines_.open(fd);
  const SinkStart start{snapshot, wanted, now_ns()};
  each_sink([&](auto& sink) { sink.begin(lines_, start); });
}

bool Output::drain_batch() {
  return drain(nullptr, true);
}

void Output::drain_rest(std::uint64_t until_ns) {
  std::memset(last_, 0, sizeof last_);
  lines_.view.each_thread([&](const ThreadArea& t, std::uint32_t i) {
    last_[i] = t.head.load(std::memory_order_acquire);
  });
  bool more = true;
  while (more && now_ns() < until_ns) more = drain(last_, true);
  if (more)
    complain(Trouble::time, "no time to write all lines at exit, the rest is counted as dropped");
  while (more) more = drain(last_, false);
  const std::uint64_t now = now_ns();
  each_sink([&](auto& sink) { sink.at_end(lines_, now); });
  lines_.complete_windows(LineBatch::Which::all);
}

// Writes a batch, or counts it as lost if not `written`.
bool Output::drain(const std::uint64_t* last, bool written) {
  lines_.begin();
  const bool done = lines_.run(steps_.begin(lines_.next, last),
                               [&](const Record& r, const ThreadArea& t) { steps_.record(r, t); });
  if (done) steps_.end(lines_.out(), lines_.next);
  written ? lines_.flush() : lines_.lose();
  if (lines_.file_wanted()) lines_.complete_windows(LineBatch::Which::oldest);
  return !done;
}

void Output::tick() {
  const ClockAnchor now = clock_anchor();
  lines_.view.head().alive_ns.store(now.mono_ns, std::memory_order_relaxed);
  lines_.complete_windows(LineBatch::Which::late);  // lanes may need the place of a file
  each_sink([&](auto& sink) { sink.tick(lines_, now); });
}

std::uint32_t Output::sleep_ms() {
  const std::uint64_t now = now_ns();
  std::uint32_t ms = UINT32_MAX;
  each_sink([&](const auto& sink) { ms = std::min(ms, sink.sleep_ms(now)); });
  return ms;
}

void Output::dump() {
  std::get<EndedEpochs>(sinks_).write(lines_);
  std::get<Ledgers>(sinks_).write(lines_, clock_anchor(), "dump");
}

bool Output::end() {
  std::get<EndedEpochs>(sinks_).write(lines_);
  lines_.begin();
  lines_.open_calls(true);
  clock_line(lines_.out(), lines_.view, clock_anchor());
  lines_.end(now_ns(), true, Complete::yes);
  lines_.out() << "]\n";
  return lines_.close();
}

void Output::leave() {
  each_sink([](auto& sink) { sink.leave(); });
}

}  // namespace tprof
