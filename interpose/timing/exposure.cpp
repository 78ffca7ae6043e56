#include "interpose/timing/exposure.h"

namespace tprof::timing {

// Of streams behind the table nothing is known but their spans.
Exposure::Stream& Exposure::entry(const Span& span) {
  newest_ns_ = std::max(newest_ns_, span.end_ns);
  Stream* s = &stream_[kStreams - 1];
  for (std::uint32_t n = 0, i = mix64(span.stream) % (kStreams - 1); n < 8;
       ++n, i = (i + 1) % (kStreams - 1)) {
    if (stream_[i].stream != span.stream && stream_[i].stream != 0) continue;
    s = &stream_[i];
    s->stream = span.stream;
    break;
  }
  // Else it may have had nothing to do meanwhile.
  if (s->end_ns != 0 && span.enqueued_ns <= s->end_ns && span.start_ns > s->end_ns) {
    s->busy_ns += span.start_ns - s->end_ns;
    most_busy_ns_ = std::max(most_busy_ns_, s->busy_ns);
  }
  s->end_ns = std::max(s->end_ns, span.end_ns);
  return *s;
}

void Exposure::call(const TimedSpan& span) {
  Stream& s = entry(span);
  const std::uint64_t before = s.stream == span.stream ? s.last_call : 0;
  call_[span.number % kCalls] = {span, before, 0, 0, false};
  s.last_call = span.number;
}

void Exposure::wait(const Wait& wait) {
  if (wait.stream != 0) entry(wait);
  held_.push_back(wait);
}

bool Exposure::computes(std::uint64_t stream) const {
  for (const Stream& s : stream_) {
    if (s.stream == stream) return s.busy_ns >= most_busy_ns_ / kServes && s.busy_ns != 0;
  }
  return false;
}

// Who waits for a stream that computes waits for what it computes.
bool Exposure::counts(const Wait& wait) const {
  for (const std::uint64_t stream : wait.through) {
    if (stream != 0 && computes(stream)) return false;
  }
  return wait.stream == 0 || computes(wait.stream);
}

}  // namespace tprof::timing
