#include "interpose/capture/timed.h"

#include <utility>

namespace tprof {

void start_timing(Thread& t, const Record& r, std::uint8_t function) {
  t.timed = {};
  // What is captured is not executed now; a group's calls are issued by its End, and timed there.
  if (r.captured || t.group_depth != 0) return;
  if (r.sync && timing::by_events()) {
    t.timed = {nullptr, true, TimingLost::sync};  // the host waits: its time there is the host's
    return;
  }
  const bool numbered = function != kMetaLaunch && !is_copy(r.bucket);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a record keeps the handle as a number
  auto* stream = reinterpret_cast<CUstream>(r.stream);
  t.timed = timing::start(stream, numbered ? r.seq : timing::kNoNumber);
}

void stop_timing(Thread& t, const Record& r, LedgerKey::Words key, bool ok, std::uint64_t parts) {
  const TimedCall timed = std::exchange(t.timed, {});
  if (!ok) return timing::drop(timed);
  const std::uint32_t tid = t.area->tid.load(std::memory_order_relaxed);
  timing::stop(timed, {key, parts, r.count, r.seq, r.start_ns, tid}, r.result != 0);
}

}  // namespace tprof
