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
  std::uint64_t elements = 0;

  auto operator<=>(const Call&) const = default;  // NOLINT(modernize-use-nullptr)

  bool is_ring() const { return function == "ncclSend"; }
};

// Why no line makes a call.
enum class Why {
  graph,         // a CUDA graph makes them
  no_line,       // its size is not known
  program,       // nccl-tests has no program for the function
  type,          // nccl-tests has no such data type or reduction
  communicator,  // it is not known on which ranks they are
  ranks,         // not all ranks of the communicator made it so often
  ring,          // sends and receives other than of each rank to the next
  size,          // parts of ranks that nccl-tests rounds, or no data
  once,          // a program makes each call at least twice
};

// Returns the program that calls the function. Empty if there is none.
std::string_view program_for(std::string_view function);

// Returns what the program calls. It is the function itself, except for ncclBcast and
// sendrecv_perf.
std::vector<std::string> functions_of(const Call& call);

// Returns what keeps a run of the program from making this call so often on each rank, and nothing
// else.
std::optional<Why> trouble(const Call& call, std::uint64_t times);

// Returns the arguments of that run.
std::vector<std::string> arguments(const Call& call, std::uint64_t times, bool one_rank_each);

}  // namespace tprof::replay
