// Steps that the program itself marks: NVTX ranges with a number, which may restart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "read/events.h"
#include "steps/found.h"

namespace tprof::steps {

// Knows the usual names of single steps (format/step_mark.h).
class Marks {
 public:
  void add(const read::Range& range);
  // Returns the steps of the range name that covers the most time; empty if there are none.
  std::vector<Interval> steps() const;

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  std::map<std::string, std::vector<Interval>, std::less<>> by_name_;
  std::map<std::string, read::Range> started_;  // by id
};

// If the program's step numbers restart on some rank, for instance with each epoch, renumbers the
// steps so that each number is unique and equal on all ranks. Returns false if they don't restart.
// Intervals must be in time order.
bool count_on(std::map<const read::Process*, std::vector<Interval>>& ranks);

}  // namespace tprof::steps
