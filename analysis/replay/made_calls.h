// The NCCL calls that have a line, as one rank made them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "replay/nccl_tests.h"
#include "run/lines.h"

namespace tprof::replay {

// A row of the ledger without its size. Calls that have no line show in these.
struct Kind {
  std::int64_t comm = 0;
  std::string function;
  std::string dtype;

  auto operator<=>(const Kind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// For sends and receives `call.root` is the other end. `call.nranks` is 0.
struct Made {
  std::int64_t comm = 0;
  Call call;

  auto operator<=>(const Made&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct MadeCalls {
  explicit MadeCalls(const read::Process& /*its lines are enough*/) {}
  void call(const read::Event& e);

  static constexpr std::size_t kMost = 65536;  // different calls

  std::map<Made, read::Amounts> made;
  std::map<Kind, read::Amounts> others;  // calls beyond so many
  std::map<Kind, read::Amounts> lines;   // both together
};

// Returns the amounts of so many calls of these, which are all alike.
read::Amounts some_of(const read::Amounts& all, std::uint64_t calls);
read::Amounts less(const read::Amounts& all, const read::Amounts& part);

}  // namespace tprof::replay
