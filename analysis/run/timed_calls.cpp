#include "run/timed_calls.h"

namespace tprof::run {

void TimedCalls::call(const read::Event& e) {
  if (!any_ || e.unfinished || e.captured || e.failed) return sink_(e, nullptr);
  const Begun begun{e.ts_ns, e.thread};
  const read::DeviceTime* time = times_.find(begun);
  if (time != nullptr && time->name == e.name) {
    times_.take_found();
    return sink_(e, time);
  }
  // A batch of copies has one call per direction, all of which began at the same moment.
  if (calls_.find(begun) != nullptr) return sink_(e, nullptr);
  calls_.add(begun, e);
  if (calls_.size() > kMostWaiting) sink_(calls_.take_oldest(), nullptr);
}

void TimedCalls::time(const read::DeviceTime& t) {
  if (t.launch) return;
  const Begun begun{t.ts_ns - t.queued_ns, t.thread};
  const read::Event* call = calls_.find(begun);
  if (call != nullptr && call->name == t.name) {
    calls_.take_found();
    return sink_(*call, &t);
  }
  if (times_.find(begun) != nullptr) return;
  times_.add(begun, t);
  if (times_.size() > kMostWaiting) times_.take_oldest();
}

void TimedCalls::finish() {
  for (const auto& [begun, call] : calls_.take_all()) sink_(call, nullptr);
  times_ = {};
}

}  // namespace tprof::run
