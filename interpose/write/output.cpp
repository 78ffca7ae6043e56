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
  WholeWindows::complete(lines_, WholeWindows::Which::all);
}

// Writes a batch; with `written` false it counts as lost.
bool Output::drain(const std::uint64_t* last, bool written) {
  lines_.begin();
  std::uint64_t events = 0;
  const bool more =
      !lines_.drain.run(lines_.text, lines_.next, events, last, lines_.windows.texts());
  written ? lines_.flush(events) : lines_.lose(events);
  if (lines_.drain.file_wanted()) WholeWindows::complete(lines_, WholeWindows::Which::oldest);
  return more;
}

void Output::tick() {
  const ClockAnchor now = clock_anchor();
  lines_.view.head().alive_ns.store(now.mono_ns, std::memory_order_relaxed);
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
  Text& text = lines_.text;
  Progress& end = lines_.next;
  lines_.drain.open_calls(text, end, true);
  clock_line(text, lines_.view, clock_anchor());
  ledger_line(text, lines_.view, lines_.sums, now_ns(), end.epoch, "close", true);
  lines_.drain.communicators(text);
  footer_line(text, lines_.view, lines_.sums, end, Complete::yes);
  text << "]\n";
  if (!lines_.close()) return false;
  each_sink([](auto& sink) { sink.closed(); });
  return true;
}

void Output::leave() {
  each_sink([](auto& sink) { sink.leave(); });
}

}  // namespace tprof
