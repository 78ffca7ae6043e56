// Calls with the device's times of them, whose lines stand before or behind theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "read/events.h"

namespace tprof::stats {

// Of one rank, in memory that does not grow with its lines: a call and its time that are further
// apart than so many others do not find each other.
class TimedCalls {
 public:
  static constexpr std::size_t kMostWaiting = std::size_t{1} << 15;

  // Gets each call once, with its time, or null: none came.
  using Sink = std::function<void(const read::Event&, const read::DeviceTime*)>;
  explicit TimedCalls(Sink sink) : sink_(std::move(sink)) {}

  void call(const read::Event& e);
  void time(const read::DeviceTime& t);
  void finish();  // behind the last line

 private:
  using Begun = std::pair<std::int64_t, std::int64_t>;  // when, and on which thread

  Sink sink_;
  std::map<Begun, read::Event> calls_;
  std::map<Begun, read::DeviceTime> times_;
};

}  // namespace tprof::stats
