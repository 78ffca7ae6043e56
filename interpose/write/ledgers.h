// A sink: the cumulative ledgers that a process writes while it runs, and its clock lines.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

class Ledgers : public Sink {
 public:
  void begin(LineBatch& lines, const SinkStart& start);
  // If calls were made since the last ledger and its interval has passed, writes one. Else, if the
  // wall clock was set, writes a clock line.
  void tick(LineBatch& lines, const ClockAnchor& now);
  void write(LineBatch& lines, const ClockAnchor& clock, std::string_view reason);

 private:
  // The contract's intervals. Ledgers come often at first, when most that can go wrong does; a day
  // of them is 150 lines.
  static constexpr std::uint64_t kFirstNs = 10'000'000'000;
  static constexpr std::uint64_t kLongestNs = 600'000'000'000;

  std::uint64_t last_ns_ = 0;
  std::uint64_t every_ns_ = kFirstNs;
  ClockAnchor last_clock_{};
  std::uint64_t last_transactions_ = 0;
};

}  // namespace tprof
