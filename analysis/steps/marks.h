// Steps that the program itself marks: NVTX ranges with a number, which may come back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "read/events.h"

namespace tprof::steps {

struct Mark {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

// Knows the names that frameworks and people give to single steps: see format/step_mark.h.
class Marks {
 public:
  void add(const read::Range& range);
  // Returns the marks of the name that covers the most time; empty if there are none.
  std::vector<Mark> steps() const;

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  std::map<std::string, std::vector<Mark>, std::less<>> by_name_;
  std::map<std::string, read::Range> started_;  // by id
};

}  // namespace tprof::steps
