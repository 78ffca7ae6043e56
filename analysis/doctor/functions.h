// The functions that a libtprof.so wraps and those that it leaves alone, as the library itself
// lists them (interpose/api/function_list.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tprof::doctor {

struct WrappedFunction {
  std::string library;  // "nccl", "cudart" or "cuda"
  std::string name;
  std::string since;  // version of the library, "12.8"; empty: not known
  std::vector<std::string>
      buckets;           // that a call may count in; none: it only helps to count others
  std::string elements;  // "count", "count_times_ranks" or "bytes"; empty: none
  std::string needs;     // setting without which it is passed through
};

struct LeftOutFunction {
  std::string library;
  std::string name;
  std::string reason;
};

struct FunctionList {
  std::vector<WrappedFunction> wrapped;
  std::vector<LeftOutFunction> left_out;
};

// Throws BadInput, in the name of `file`, where `text` is no such list.
FunctionList parse_functions(std::string_view file, std::string_view text);

std::string to_text(const FunctionList& list);
std::string to_json(const FunctionList& list);

}  // namespace tprof::doctor
