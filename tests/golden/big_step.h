// One step of a training job with PyTorch's FSDP2, as times on the devices: worked out once for a
// job, since its ranks differ by little.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tprof::test {

enum Group { kNone, kWorld, kShard, kReplicas };  // a communicator's number is its group's

struct Operation {
  std::string_view function;
  std::string_view bucket;
  std::string_view dtype;
  std::uint64_t element_size;
  Group group;
  bool backward;  // called by autograd's thread
  int stream;
  int dtype_number;      // ncclDataType_t
  int reduction_number;  // the contract's number
  std::string_view reduction;
};

enum Which { kInput, kGather, kGatherAgain, kScatter, kSum, kNorm, kLoss, kOperations };
inline constexpr Operation kAll[kOperations] = {
    {"cudaMemcpyAsync", "H2D", "byte", 1, kNone, false, 0, 0, 0, ""},
    {"ncclAllGather", "ALLGATHER", "bfloat16", 2, kShard, false, 1, 9, 0, ""},
    {"ncclAllGather", "ALLGATHER", "bfloat16", 2, kShard, true, 1, 9, 0, ""},
    {"ncclReduceScatter", "RESHARDING", "bfloat16", 2, kShard, true, 3, 9, 5, "avg"},
    {"ncclAllReduce", "ALLREDUCE", "bfloat16", 2, kReplicas, true, 4, 9, 5, "avg"},
    {"ncclAllReduce", "ALLREDUCE", "float32", 4, kWorld, false, 2, 7, 1, "sum"},
    {"cudaMemcpyAsync", "D2H", "byte", 1, kNone, false, 0, 0, 0, ""},
};

// Ranks of one class have the same times: those of other groups, those that share a group with the
// slow rank, and that rank.
enum Class { kOthers, kBesideSlow, kSlow, kClasses };
template <typename T>
using Each = std::array<T, kClasses>;

// Nanoseconds since the step began.
struct Span {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

struct Call {
  Which which;
  std::int64_t host_ns;
  Each<Span> device{};
  Each<std::int64_t> exposed_ns{};
};

struct Step {
  std::int64_t length_ns = 0;
  std::vector<Call> calls{};
  Each<std::vector<Span>> computing{};
};

// A model of `units` that are gathered one by one, on one group of ranks, or on several whose
// gradients are then summed (`replicas`). The slow rank computes for `pace` times as long.
Step step_of(int units, bool replicas, double pace);

}  // namespace tprof::test
