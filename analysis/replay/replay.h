// The calls of a job as commands of nccl-tests, and those that can't be made that way. The calls
// that the programs make with each option are from their sources
// (https://github.com/NVIDIA/nccl-tests, src/common.cu and src/<program>.cu of 2.19.6).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "filter/filter.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "run/lines.h"

namespace tprof::replay {

// A call that all ranks of a communicator make in the same way. A ring of sends and receives, from
// each rank to the next, is an ncclSend.
struct Call {
  std::string function;
  std::int64_t nranks = 0;
  std::string dtype;
  std::uint64_t count = 0;  // the API's argument
  std::string reduce;       // empty: none
  std::int64_t root = -1;   // -1: none
  std::uint64_t bytes = 0;  // as in the contract and nccl-tests
  std::uint64_t elements = 0;

  auto operator<=>(const Call&) const = default;  // NOLINT(modernize-use-nullptr)

  bool is_ring() const { return function == "ncclSend"; }
};

// Why no command makes a call.
enum class Why {
  graph,         // a CUDA graph makes them
  no_line,       // its size is unknown
  program,       // nccl-tests has no program for the function
  type,          // nccl-tests has no such data type or reduction
  communicator,  // its ranks are unknown
  ranks,         // not all ranks of the communicator made it as often
  ring,          // not sends from each rank to the next
  size,          // nccl-tests would round each rank's part, or no data
  once,          // nccl-tests makes each call at least twice
};

// One command.
struct Run {
  Call call;
  std::uint64_t times = 0;  // on each of call.nranks ranks
  std::uint64_t communicators = 0;
  std::size_t hosts = 0;              // the most hosts of one communicator
  std::int64_t first_ns = INT64_MAX;  // when the call was first made

  read::Amounts moved() const;  // on all ranks
};

struct LeftOut {
  Why why = Why::graph;
  std::string function;
  std::int64_t nranks = 0;  // 0: not known
  std::string dtype;

  auto operator<=>(const LeftOut&) const = default;  // NOLINT(modernize-use-nullptr)
};

// All executed NCCL calls are either in `runs` or in `left`.
struct Plan {
  std::vector<Run> runs;  // sorted by the first call
  std::map<LeftOut, read::Amounts> left;
  std::vector<read::Skipped> unreadable;  // files with an unreadable line
  filter::Words only;                     // the filters; empty: none
  std::vector<std::string> notes;         // limits of the filters
};

Plan plan(const run::Lines& lines);

// The output of `tprof replay`: a shell script, or JSON.

struct Launch {
  bool mpi = false;  // one process per rank, with programs built with MPI=1
};

std::string to_text(const job::Job& job, const Plan& plan, const Launch& launch,
                    std::size_t width = SIZE_MAX);
std::string to_json(const job::Job& job, const Plan& plan, const Launch& launch);

}  // namespace tprof::replay
