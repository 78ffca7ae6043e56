// The calls of a job as runs of nccl-tests' programs, and those that can't be made so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "filter/filter.h"
#include "read/folder.h"
#include "replay/nccl_tests.h"
#include "run/lines.h"

namespace tprof::replay {

struct Moved {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  Moved& operator+=(const Moved& other);
  Moved& operator-=(const Moved& other);  // not below 0
};

// One run of a program.
struct Run {
  Call call;
  std::uint64_t times = 0;  // on each of call.nranks ranks
  std::uint64_t communicators = 0;
  std::size_t hosts = 0;              // most hosts that the ranks of one of them are on
  std::int64_t first_ns = INT64_MAX;  // when it was made first

  Moved moved() const;  // on all ranks
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
  std::map<Left, Moved> left;
  std::vector<read::Skipped> unreadable;  // files with a line that can't be read
  filter::Words only;                     // which calls these are; empty: all
  std::vector<std::string> notes;         // what is not exact for that
};

Plan plan(const run::Lines& lines);

}  // namespace tprof::replay
