#include "stats/timed_calls.h"

namespace tprof::stats {

void TimedCalls::call(const read::Event& e) {
  if (e.unfinished || e.captured || e.failed) return sink_(e, nullptr);
  const Begun begun{e.ts_ns, e.thread};
  const auto time = times_.find(begun);
  if (time != times_.end() && time->second.name == e.name) {
    sink_(e, &time->second);
    times_.erase(time);
    return;
  }
  // A batch of copies has one call per direction, all of which began at the same moment.
  if (!calls_.try_emplace(begun, e).second) return sink_(e, nullptr);
  if (calls_.size() <= kMostWaiting) return;
  sink_(calls_.begin()->second, nullptr);
  calls_.erase(calls_.begin());
}

void TimedCalls::time(const read::DeviceTime& t) {
  if (t.launch) return;
  const Begun begun{t.ts_ns - t.queued_ns, t.thread};
  const auto call = calls_.find(begun);
  if (call != calls_.end() && call->second.name == t.name) {
    sink_(call->second, &t);
    calls_.erase(call);
    return;
  }
  times_.try_emplace(begun, t);
  if (times_.size() > kMostWaiting) times_.erase(times_.begin());
}

void TimedCalls::finish() {
  for (const auto& [begun, call] : calls_) sink_(call, nullptr);
  calls_.clear();
  times_.clear();
}

}  // namespace tprof::stats
