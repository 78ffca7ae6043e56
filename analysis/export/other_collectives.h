// Collects the collectives that PyTorch's profiler marks: `record_param_comms`, or the ranges
// `nccl:NAME` of versions whose records have no name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "align/enclosed.h"

namespace tprof::trace_export {

class OtherCollectives {
 public:
  // Takes an event of a thread, with `name` and `args` as JSON.
  void add(std::string_view thread, std::string_view name, std::string_view args,
           std::int64_t begin_ns, std::int64_t end_ns);

  // Returns all of them by their begin. If one encloses another (a barrier and its all-reduce),
  // only the inner one is returned.
  std::vector<align::Stay> all() &&;

 private:
  struct Mark {
    std::string thread;
    align::Stay stay;
  };
  static std::vector<align::Stay> innermost(std::vector<Mark> marks);

  std::vector<Mark> records_;
  std::vector<Mark> ranges_;
};

}  // namespace tprof::trace_export
