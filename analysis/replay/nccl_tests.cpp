#include "replay/nccl_tests.h"

#include <algorithm>
#include <iterator>

namespace tprof::replay {
namespace {

struct Program {
  std::string_view function;
  std::string_view name;
  bool parts = false;  // the size is that of all ranks' parts, each of which it rounds down
};

constexpr Program kPrograms[] = {
    {"ncclAllGather", "all_gather_perf", true},
    {"ncclReduceScatter", "reduce_scatter_perf", true},
    {"ncclAllReduce", "all_reduce_perf"},
    {"ncclBroadcast", "broadcast_perf"},
    {"ncclBcast", "broadcast_perf"},
    {"ncclReduce", "reduce_perf"},
    {"ncclAlltoAll", "alltoall_perf", true},
    {"ncclGather", "gather_perf", true},
    {"ncclScatter", "scatter_perf", true},
    {"ncclSend", "sendrecv_perf"},
};

struct Name {
  std::string_view ours;
  std::string_view theirs;
};

constexpr Name kTypes[] = {
    {"int8", "int8"},         {"uint8", "uint8"},       {"int32", "int32"},
    {"uint32", "uint32"},     {"int64", "int64"},       {"uint64", "uint64"},
    {"float16", "half"},      {"float32", "float"},     {"float64", "double"},
    {"bfloat16", "bfloat16"}, {"float8e4m3", "f8e4m3"}, {"float8e5m2", "f8e5m2"},
};
// The only reductions that NCCL lets a program make are ncclRedOpCreatePreMulSum's.
constexpr Name kReductions[] = {{"sum", "sum"}, {"prod", "prod"}, {"max", "max"},
                                {"min", "min"}, {"avg", "avg"},   {"custom", "mulsum"}};

template <std::size_t N>
std::string_view theirs(const Name (&names)[N], std::string_view ours) {
  const auto* found = std::ranges::find(names, ours, &Name::ours);
  return found == std::end(names) ? std::string_view() : found->theirs;
}

const Program* program_of(std::string_view function) {
  const auto* found = std::ranges::find(kPrograms, function, &Program::function);
  return found == std::end(kPrograms) ? nullptr : found;
}

constexpr std::uint64_t kPartBytes = 16;  // a rank's part is a multiple of it

}  // namespace

std::string_view program_for(std::string_view function) {
  const Program* program = program_of(function);
  return program == nullptr ? std::string_view() : program->name;
}

std::vector<std::string> functions_of(const Call& call) {
  if (call.is_ring()) return {"ncclSend", "ncclRecv"};
  return {call.function == "ncclBcast" ? "ncclBroadcast" : call.function};
}

std::optional<Why> trouble(const Call& call, std::uint64_t times) {
  const Program* program = program_of(call.function);
  if (program == nullptr) return Why::program;
  if (theirs(kTypes, call.dtype).empty()) return Why::type;
  if (!call.reduce.empty() && theirs(kReductions, call.reduce).empty()) return Why::type;
  const auto parts = program->parts ? static_cast<std::uint64_t>(call.nranks) * kPartBytes : 1;
  if (call.bytes == 0 || call.bytes % parts != 0) return Why::size;
  return times < 2 ? std::optional(Why::once) : std::nullopt;
}

std::vector<std::string> arguments(const Call& call, std::uint64_t times, bool one_rank_each) {
  const std::string bytes = std::to_string(call.bytes);
  std::vector<std::string> words = {"-b", bytes, "-e", bytes, "-d"};
  words.emplace_back(theirs(kTypes, call.dtype));
  if (!call.reduce.empty()) {
    words.insert(words.end(), {"-o", std::string(theirs(kReductions, call.reduce))});
  }
  if (call.root >= 0) words.insert(words.end(), {"-r", std::to_string(call.root)});
  // TimeTest warms up -w times with each size. BenchTime then makes one call, and -n more, twice:
  // out of place and in place. -c 0 makes none whose data is looked at.
  const std::uint64_t warm_up = times % 2;
  const std::uint64_t timed = (times - warm_up) / 2 - 1;
  words.insert(words.end(), {"-g", one_rank_each ? "1" : std::to_string(call.nranks), "-w",
                             std::to_string(warm_up), "-n", std::to_string(timed), "-c", "0"});
  return words;
}

}  // namespace tprof::replay
