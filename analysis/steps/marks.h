// Steps that the program itself marks: NVTX ranges with a number, however
// often it comes back.
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

// Names as frameworks and people give them to one step each: see format/step_mark.h.
class Marks {
 public:
  void add(const read::Range& range);
  // Those of the name that reaches over most time; empty where there are none.
  std::vector<Mark> steps() const;

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  std::map<std::string, std::vector<Mark>, std::less<>> by_name_;
  std::map<std::string, read::Range> started_;  // by id
};

}  // namespace tprof::steps
