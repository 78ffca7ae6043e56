// Several diagnoses look at these: where a rank stood, and which of its calls returned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "read/events.h"

namespace tprof::diagnose {

// The numbers of collectives that have a line and returned: mostly one after the other.
struct Numbers {
  std::uint64_t first = UINT64_MAX;
  std::uint64_t end = 0;
  std::uint64_t lines = 0;

  bool may_have(std::uint64_t seq) const { return seq >= first && seq < end; }
};

// Where a rank stood when its trace ended.
struct LastCalls {
  explicit LastCalls(const read::Process& rank) : rank_(rank) {}
  void call(const read::Event& e);
  void launch(const read::Event& e) { remember(e); }
  void last_call(const read::Event& e);
  void life(const read::LifeCall& c);
  void open_range(const read::Range& range);

  bool knows_last() const;  // the ring tells, or all that was called has a line

  std::vector<read::Event> open;               // calls that never returned
  std::vector<read::LifeCall> open_life;       // those of a communicator's life
  std::vector<read::LifeCall> failed_life;     // those that were refused, the first few
  std::vector<read::Range> ranges;             // NVTX ranges that were pushed and not popped, of a
                                               // thread outermost first
  std::map<std::int64_t, Numbers> numbers;     // by communicator
  std::optional<read::Event> last;             // the call, launch or such a call that began last
  std::map<std::int64_t, std::int64_t> begun;  // by communicator: when its first was called
  // They are of a process that did not close, by communicator.
  std::map<std::int64_t, read::Event> last_collective;

 private:
  const read::Process& rank_;
  void remember(const read::Event& e);
  bool from_ring_ = false;  // which tells what it did last, whatever has lines
};

}  // namespace tprof::diagnose
