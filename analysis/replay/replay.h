// The calls of a job as runs of nccl-tests' programs, and those that can't be made so. The programs
// make calls by their options as their sources have it (https://github.com/NVIDIA/nccl-tests,
// src/common.cu and src/<program>.cu of 2.19.6).
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

// One run of a program.
struct Run {
  Call call;
  std::uint64_t times = 0;  // on each of call.nranks ranks
  std::uint64_t communicators = 0;
  std::size_t hosts = 0;              // most hosts that the ranks of one of them are on
  std::int64_t first_ns = INT64_MAX;  // when it was made first

  read::Amounts moved() const;  // on all ranks
};

struct Left {
  Why why = Why::graph;
  std::string function;
  std::int64_t nranks = 0;  // 0: not known
  std::string dtype;

  auto operator<=>(const Left&) const = default;  // NOLINT(modernize-use-nullptr)
};

// All executed NCCL calls are in the one or the other.
struct Plan {
  std::vector<Run> runs;  // in the order in which their calls were made first
  std::map<Left, read::Amounts> left;
  std::vector<read::Skipped> unreadable;  // files with a line that can't be read
  filter::Words only;                     // which calls these are; empty: all
  std::vector<std::string> notes;         // what is not exact for that
};

Plan plan(const run::Lines& lines);

// The output of `tprof replay`: a shell script, or JSON.

struct Launch {
  bool mpi = false;  // one process for each rank, of programs built with MPI=1
};

std::string to_text(const job::Job& job, const Plan& plan, const Launch& launch,
                    std::size_t width = SIZE_MAX);
std::string to_json(const job::Job& job, const Plan& plan, const Launch& launch);

}  // namespace tprof::replay
