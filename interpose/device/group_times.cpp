#include "interpose/device/group_times.h"

#include <algorithm>
#include <span>

#include "interpose/api/results.h"
#include "interpose/device/streams.h"

namespace tprof {

GroupTimes::OnStream* GroupTimes::on_stream(const GroupedCall& call) {
  for (OnStream& s : std::span(stream_, streams_)) {
    if (s.stream == stream_of(call.call)) return &s;
  }
  if (streams_ == kStreams) return nullptr;
  stream_[streams_] = {
      stream_of(call.call), {call.key, 0, 0, call.call.seq, call.call.start_ns, 0}, {}};
  return &stream_[streams_++];
}

void GroupTimes::start(const Thread& t) {
  if (!device::on() || t.pending == nullptr) return;
  for (const GroupedCall& call : *t.pending) {
    OnStream* s = on_stream(call);
    if (s == nullptr || call.graph != nullptr || !accepted(ncclResult_t(call.call.result)))
      continue;
    s->of.mixed = s->of.mixed || call.key.low != s->of.key.low || call.key.high != s->of.key.high;
    ++s->of.calls;
    s->of.count += call.call.count;
    s->of.tid = t.area->tid.load(std::memory_order_relaxed);
  }
  // CUPTI records the whole group under one id, and its streams have other ids than ours.
  const bool one_time = !device::in_streams() && streams_ > 1;
  for (OnStream& s : std::span(stream_, streams_)) {
    if (s.of.calls == 0) continue;  // captured calls
    if (device::streams::on()) device::streams::waits(s.stream);
    s.timed =
        one_time ? TimedCall{nullptr, true, TimingLost::mixed} : device::start(s.stream, s.of.seq);
  }
  if (device::streams::on()) device::streams::turns_away();
}

// A stream's time is stored under its first call's communicator. Later calls on the other
// communicators come after this group, too.
void GroupTimes::pass_by_others(const Thread& t) const {
  for (const GroupedCall& call : *t.pending) {
    if (call.graph != nullptr || !accepted(ncclResult_t(call.call.result))) continue;
    for (const OnStream& s : std::span(stream_, streams_)) {
      if (s.stream != stream_of(call.call) || s.of.key.high == call.key.high) continue;
      device::stop({}, s.stream, {call.key, 1, 0, 0, 0, 0}, false);
    }
  }
}

void GroupTimes::stop(const Thread& t, ncclResult_t result) {
  for (const OnStream& s : std::span(stream_, streams_)) {
    if (s.of.calls == 0) continue;  // captured calls
    accepted(result) ? device::stop(s.timed, s.stream, s.of, result == ncclInProgress)
                     : device::drop(s.timed);
  }
  const bool mixed = std::any_of(stream_, stream_ + streams_,
                                 [](const OnStream& s) { return s.of.calls != 0 && s.of.mixed; });
  if (mixed && accepted(result)) pass_by_others(t);
}

}  // namespace tprof
