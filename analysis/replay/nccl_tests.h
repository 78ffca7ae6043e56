// What the programs of nccl-tests call by their options, as their sources have it
// (https://github.com/NVIDIA/nccl-tests, src/common.cu and src/<program>.cu of 2.19.6).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::replay {

// A call that all ranks of a communicator make alike. Of a ring of sends and receives, each rank to
// the next, ncclSend.
struct Call {
  std::string function;
  std::int64_t nranks = 0;
  std::string dtype;
  std::uint64_t count = 0;  // the API's
  std::string reduce;       // empty: none
  std::int64_t root = -1;   // -1: none
  std::uint64_t bytes = 0;  // as the contract has them, which is as nccl-tests has them

  auto operator<=>(const Call&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Empty: there is none.
std::string_view program_for(std::string_view function);

// What the program calls; but for ncclBcast and sendrecv_perf it is the function itself.
std::string functions_of(const Call& call);

enum class Trouble { none, program, type, size, once };

// Whether a run of the program can make this call so often on each rank, and nothing else.
Trouble trouble(const Call& call, std::uint64_t times);

// Of that run.
std::vector<std::string> arguments(const Call& call, std::uint64_t times, bool one_rank_each);

}  // namespace tprof::replay
