// Steps that the program itself marks: NVTX ranges with a number, which may come back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "read/events.h"
#include "steps/found.h"

namespace tprof::steps {

// Knows the names that frameworks and people give to single steps: see format/step_mark.h.
class Marks {
 public:
  void add(const read::Range& range);
  // Returns the steps of the name that covers the most time; empty if there are none.
  std::vector<Interval> steps() const;

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  std::map<std::string, std::vector<Interval>, std::less<>> by_name_;
  std::map<std::string, read::Range> started_;  // by id
};

// If the program's numbers begin again on some rank, for instance with each epoch, counts them on,
// so that each step has its own, the same on all ranks. Returns false if they don't. Intervals must
// be in the order of time.
bool count_on(std::map<const read::Process*, std::vector<Interval>>& ranks);

}  // namespace tprof::steps
