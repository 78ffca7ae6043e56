#include "export/kineto_names.h"

#include <algorithm>
#include <iterator>

namespace tprof::trace_export {
namespace {

struct Name {
  std::string_view ours;
  std::string_view theirs;
};

constexpr Name kOperations[] = {
    {"ncclAllGather", "nccl:all_gather"},
    {"ncclReduceScatter", "nccl:reduce_scatter"},
    {"ncclAllReduce", "nccl:all_reduce"},
    {"ncclBroadcast", "nccl:broadcast"},
    {"ncclBcast", "nccl:broadcast"},
    {"ncclReduce", "nccl:reduce"},
    {"ncclAlltoAll", "nccl:all_to_all"},
    {"ncclGather", "nccl:gather"},
    {"ncclScatter", "nccl:scatter"},
    {"ncclSend", "nccl:send"},
    {"ncclRecv", "nccl:recv"},
};

constexpr Name kTypes[] = {
    {"int8", "signed char"}, {"uint8", "unsigned char"}, {"int32", "int"},
    {"int64", "long int"},   {"float16", "c10::Half"},   {"bfloat16", "c10::BFloat16"},
    {"float32", "float"},    {"float64", "double"},
};

template <std::size_t N>
std::string_view theirs(const Name (&names)[N], std::string_view ours, std::string_view otherwise) {
  const auto* found = std::ranges::find(names, ours, &Name::ours);
  return found == std::end(names) ? otherwise : found->theirs;
}

}  // namespace

std::string_view kineto_operation(std::string_view function) {
  return theirs(kOperations, function, {});
}

std::string_view kineto_type(std::string_view dtype) {
  return theirs(kTypes, dtype, dtype);
}

std::string kineto_kernel(const read::Event& e) {
  switch (e.bucket) {
    case Bucket::H2D:
      return "Memcpy HtoD";
    case Bucket::D2H:
      return "Memcpy DtoH";
    case Bucket::D2D:
      return "Memcpy DtoD";
    case Bucket::H2H:
      return "Memcpy HtoH";
    case Bucket::MANAGED:
      return "Memcpy managed";
    default:
      return "ncclKernel_" +
             (e.name.str().starts_with("nccl") ? e.name.str().substr(4) : e.name.str());
  }
}

}  // namespace tprof::trace_export
