// A sink: looks every second whether the rank file has been removed, and brings it back.
#pragma once

#include <cstdint>
#include <utility>

#include "interpose/base/complain.h"
#include "interpose/write/line_batch.h"
#include "interpose/write/sink.h"

namespace tprof {

class RankFileName : public Sink {
 public:
  // Does not bring the file back at once while its folder is there: whoever removed the file may be
  // about to remove that too.
  void tick(LineBatch& lines, const ClockAnchor& now) {
    constexpr std::uint64_t kEveryNs = 1'000'000'000;
    if (now.mono_ns < next_ns_) return;
    next_ns_ = now.mono_ns + kEveryNs;
    const bool was_nameless = std::exchange(nameless_, lines.file.nameless());
    if (!nameless_ || !was_nameless || lines.file.bring_back(lines.offset())) return;
    complain(Trouble::removed, "the trace is lost, unless its folder is made again while we run: ",
             bounded_text(lines.view.head().directory));
  }

 private:
  std::uint64_t next_ns_ = 0;
  bool nameless_ = false;  // at the last look
};

}  // namespace tprof
