// The calls of a job as runs of nccl-tests' programs, and those that can't be made so.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "filter/filter.h"
#include "job/jobs.h"
#include "read/events.h"
#include "read/folder.h"
#include "replay/nccl_tests.h"

namespace tprof::replay {

// One run of a program.
struct Run {
  Call call;
  std::uint64_t times = 0;  // on each of call.nranks ranks
  std::uint64_t communicators = 0;
  std::size_t hosts = 0;    // most hosts that the ranks of one of them are on
  read::Amounts amounts{};  // on all ranks
};

enum class Why {
  graph,         // a CUDA graph makes them
  no_line,       // the ledger alone has them
  program,       // nccl-tests has no program for the function
  type,          // nccl-tests has no such data type or reduction
  communicator,  // it is not known on which ranks they are
  ranks,         // not all ranks of the communicator made it so often
  ring,          // sends and receives other than of each rank to the next
  size,          // parts of ranks that nccl-tests rounds, or no data
  once,          // a program makes each call at least twice
  many,          // calls of more different sizes than are kept
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
  std::vector<Run> runs;
  std::map<Left, read::Amounts> left;
  std::vector<read::Skipped> unreadable;  // files with a line that can't be read
  filter::Words only;                     // which calls these are; empty: all
  std::vector<std::string> notes;         // what is not exact for that
};

Plan plan(const run::Lines& lines);

}  // namespace tprof::replay
