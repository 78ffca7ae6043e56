#include "interpose/write/sinks.h"

#include <algorithm>

namespace tprof {
namespace {

// True if the wall clock was set between the two. Drift and slewing may be 500 ppm each.
bool stepped(const ClockAnchor& from, const ClockAnchor& to) {
  const std::uint64_t mono = to.mono_ns - from.mono_ns;
  const auto difference = static_cast<std::int64_t>(to.real_ns - from.real_ns - mono);
  const auto allowed =
      static_cast<std::int64_t>(1'000'000 + mono / 1000 + from.bracket_ns + to.bracket_ns);
  return difference > allowed || difference < -allowed;
}

std::uint64_t transactions(const View& view) {
  std::uint64_t sum = 0;
  view.each_thread([&](const ThreadArea& t, std::uint32_t) {
    sum += t.committed.load(std::memory_order_relaxed);
  });
  return sum;
}

}  // namespace

void Ledgers::begin(LineBatch& /*lines*/, const SinkStart& start) {
  last_ns_ = start.now_ns;
  last_clock_ = clock_anchor();
}

void Ledgers::tick(LineBatch& lines, const ClockAnchor& now) {
  const std::uint64_t made = transactions(lines.view);
  if (now.mono_ns - last_ns_ >= every_ns_ && made != last_transactions_) {
    last_transactions_ = made;
    every_ns_ = std::min(2 * every_ns_, kLongestNs);
    write(lines, now, "interval");
  } else if (stepped(last_clock_, now)) {
    lines.begin();
    clock_line(lines.out(), lines.view, now);
    lines.flush();
    last_clock_ = now;
  }
}

void Ledgers::write(LineBatch& lines, const ClockAnchor& clock, std::string_view reason) {
  last_ns_ = clock.mono_ns;
  last_clock_ = clock;
  lines.begin();
  clock_line(lines.out(), lines.view, clock);
  lines.ledger(clock.mono_ns, reason, false);
  lines.needs_to_close(lines.out().size());
  lines.flush();
}

}  // namespace tprof
