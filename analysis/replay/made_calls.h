// The NCCL calls that have a line, as one rank made them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "collect/lines.h"
#include "replay/nccl_tests.h"

namespace tprof::replay {

// The rows of the ledger without their sizes: what has no line shows in these.
struct Kind {
  std::int64_t comm = 0;
  std::string function;
  std::string dtype;

  auto operator<=>(const Kind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// `call.root`: of sends and receives the other end. `call.nranks` is 0.
struct Made {
  std::int64_t comm = 0;
  Call call;

  auto operator<=>(const Made&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct MadeCalls : collect::Collector {
  using Collector::Collector;
  void call(const read::Event& e) override;

  static constexpr std::size_t kMost = 65536;  // different ones

  std::map<Made, read::Amounts> made;
  std::map<Kind, read::Amounts> others;  // behind so many
  std::map<Kind, read::Amounts> lines;   // both together
};

// Of calls that are all alike so many.
read::Amounts some_of(const read::Amounts& all, std::uint64_t calls);
read::Amounts less(const read::Amounts& all, const read::Amounts& part);

}  // namespace tprof::replay
