// The calls that the programs of nccl-tests make by their options, as their sources have it
// (https://github.com/NVIDIA/nccl-tests, src/common.cu and src/<program>.cu of 2.19.6).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::replay {

// A call that all ranks of a communicator make alike. A ring of sends and receives, from each rank
// to the next, is an ncclSend.
struct Call {
  std::string function;
  std::int64_t nranks = 0;
  std::string dtype;
  std::uint64_t count = 0;  // the API's
  std::string reduce;       // empty: none
  std::int64_t root = -1;   // -1: none
  std::uint64_t bytes = 0;  // as the contract and nccl-tests have them

  auto operator<=>(const Call&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns the program that calls the function. Empty if there is none.
std::string_view program_for(std::string_view function);

// Returns what the program calls. It is the function itself, except for ncclBcast and
// sendrecv_perf.
std::string functions_of(const Call& call);

enum class Trouble { none, program, type, size, once };

// Returns what keeps a run of the program from making this call so often on each rank, and nothing
// else.
Trouble trouble(const Call& call, std::uint64_t times);

// Returns the arguments of that run.
std::vector<std::string> arguments(const Call& call, std::uint64_t times, bool one_rank_each);

}  // namespace tprof::replay
