#include "run/timed_calls.h"

namespace tprof::run {

void TimedCalls::call(const read::Event& e) {
  if (!any_ || e.unfinished || e.captured || e.failed) return sink_(e, nullptr);
  const Begun begun{e.ts_ns, e.thread};
  const auto time = times_.find(begun);
  if (time != times_.end() && time->second.name == e.name) {
    const auto taken = times_.extract(time);
    return sink_(e, &taken.mapped());
  }
  // A batch of copies has one call per direction, and all begin at the same moment.
  if (!calls_.try_emplace(begun, e).second) return sink_(e, nullptr);
  if (calls_.size() > kMostWaiting) sink_(calls_.extract(calls_.begin()).mapped(), nullptr);
}

void TimedCalls::time(const read::DeviceTime& t) {
  if (t.launch) return;
  const Begun begun{t.ts_ns - t.queued_ns, t.thread};
  const auto call = calls_.find(begun);
  if (call != calls_.end() && call->second.name == t.name) {
    const auto taken = calls_.extract(call);
    return sink_(taken.mapped(), &t);
  }
  times_.try_emplace(begun, t);
  if (times_.size() > kMostWaiting) times_.erase(times_.begin());
}

void TimedCalls::finish() {
  for (const auto& [begun, call] : calls_) sink_(call, nullptr);
  calls_.clear();
  times_.clear();
}

}  // namespace tprof::run
