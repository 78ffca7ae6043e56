// Matches calls with their device times. A time's line may come before or after the call's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "read/events.h"

namespace tprof::run {

// Takes one rank's lines in bounded memory: a call and its time are not matched if more than
// kMostWaiting others lie between them.
class TimedCalls {
 public:
  static constexpr std::size_t kMostWaiting = std::size_t{1} << 15;

  // Gets each call once, with its time, or with null if none came.
  using Sink = std::function<void(const read::Event&, const read::DeviceTime*)>;
  // `any`: there are device times; else no call waits for one.
  TimedCalls(bool any, Sink sink) : any_(any), sink_(std::move(sink)) {}

  void call(const read::Event& e);
  void time(const read::DeviceTime& t);
  void finish();  // after the last line

 private:
  using Begun = std::pair<std::int64_t, std::int64_t>;  // when, and on which thread

  bool any_;
  Sink sink_;
  // Calls and times that are not yet matched. Usually there are few.
  std::map<Begun, read::Event> calls_;
  std::map<Begun, read::DeviceTime> times_;
};

}  // namespace tprof::run
