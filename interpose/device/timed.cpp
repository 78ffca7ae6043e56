#include "interpose/device/timed.h"

#include <utility>

#include "interpose/device/streams.h"

namespace tprof {

namespace {

cudaStream_t stream_of(const Record& r) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a record keeps the handle as a number
  return reinterpret_cast<cudaStream_t>(r.stream);
}

// A group's calls are issued by its End, and timed there. A copy within a group is made at once.
bool waits_for_group(const Thread& t, const Record& r, std::uint8_t function) {
  return t.group_depth != 0 && function != kMetaLaunch && !is_copy(r.bucket);
}

// Tells device/streams.h what the call does to its stream. True: it is work of a stream that
// computes.
bool follow(const Record& r, std::uint8_t function) {
  namespace streams = device::streams;
  cudaStream_t stream = stream_of(r);
  if (r.sync) {
    streams::host_waits();
  } else if (function == kMetaLaunch) {
    streams::launches(stream);
    return true;
  } else if (is_copy(r.bucket) && streams::computes(stream)) {
    streams::launches(stream, streams::Work::copy);
    return true;
  } else {
    if (!is_copy(r.bucket) || streams::is_legacy(stream)) streams::waits(stream);
    streams::turns_away();
  }
  return false;
}

}  // namespace

void start_timing(Thread& t, const Record& r, std::uint8_t function) {
  t.timed = {};
  if (r.captured || waits_for_group(t, r, function)) return;  // it is not executed now
  const bool computes = device::streams::on() && follow(r, function);
  if (r.sync && device::in_streams()) {
    t.timed = {nullptr, true, TimingLost::sync};  // the host waits, so the host's time is its time
    return;
  }
  const bool numbered = function != kMetaLaunch && !is_copy(r.bucket);
  t.timed = device::start(stream_of(r), numbered ? r.seq : device::kNoNumber);
  t.timed.computes = computes;
}

void stop_timing(Thread& t, const Record& r, LedgerKey::Words key, bool ok, std::uint64_t parts) {
  const TimedCall timed = std::exchange(t.timed, {});
  if (timed.computes) device::streams::launched(stream_of(r));
  // A copy from or to pageable memory returns when it has finished, and the stream is empty then.
  if (timed.computes && r.host_memory == static_cast<std::uint8_t>(HostMemory::pageable)) {
    device::streams::recorded(stream_of(r));
  }
  if (r.captured) return;
  if (!ok) return device::drop(timed);
  const std::uint32_t tid = t.area->tid.load(std::memory_order_relaxed);
  const device::Calls of{key, parts, r.count, r.seq, r.start_ns, tid, timed.computes};
  device::stop(timed, stream_of(r), of, r.result != 0);
}

}  // namespace tprof
