// Collectives that PyTorch's profiler marks: `record_param_comms`, and the ranges `nccl:NAME` of
// versions that say no name there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "align/enclosed.h"

namespace tprof::trace_export {

class OtherCollectives {
 public:
  // An event of a thread: `name` and `args` as JSON.
  void add(std::string_view thread, std::string_view name, std::string_view args,
           std::int64_t begin_ns, std::int64_t end_ns);

  // All of them, by begin. Of two within one another (a barrier and its all-reduce) the inner one.
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
