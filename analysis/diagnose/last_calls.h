// Several diagnoses look at these: where a rank stood, and which of its calls returned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "diagnose/intervals.h"
#include "read/events.h"

namespace tprof::diagnose {

// The calls that returned, by communicator.
struct ReturnedCalls {
  void call(const read::Event& e);
  const Intervals& collectives(std::int64_t comm) const;  // empty where there is no line

  std::map<std::int64_t, Intervals> numbers;  // of collectives that have a line
};

// Where a rank stood when its trace ended.
struct LastCalls {
  explicit LastCalls(const read::Process& rank) : rank_(rank) {}
  void call(const read::Event& e);
  void launch(const read::Event& e) { remember(e); }
  void last_call(const read::Event& e);
  void life(const read::LifeCall& c);

  bool knows_last() const;  // the ring tells, or all that was called has a line

  std::vector<read::Event> open;               // calls that never returned
  std::vector<read::LifeCall> open_life;       // those of a communicator's life
  std::vector<read::LifeCall> failed_life;     // those that were refused, the first few
  std::optional<read::Event> last;             // the call, launch or such a call that began last
  std::map<std::int64_t, std::int64_t> begun;  // by communicator: when its first was called
  // They are of a process that did not close, by communicator.
  std::map<std::int64_t, read::Event> last_collective;

 private:
  const read::Process& rank_;
  void remember(const read::Event& e);
  bool from_ring_ = false;  // which tells what it did last, whatever has lines
};

// NVTX ranges that were pushed and not popped: of a thread outermost first.
struct OpenRanges {
  void open_range(const read::Range& range);

  std::vector<read::Range> ranges;
};

}  // namespace tprof::diagnose
