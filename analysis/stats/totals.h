// The ledgers of a job's processes added up.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "read/process.h"

namespace tprof::stats {

using Buckets = std::array<read::Amounts, kBucketCount>;

// What is the same for all calls of one line of the operations table.
struct OpKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::string name;
  std::string dtype;
  std::string comm_id;      // empty: a copy
  std::int64_t nranks = 0;  // 0: a copy
  std::int64_t bytes_class = -1;

  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const OpKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

using Ops = std::map<OpKey, read::Amounts>;

// Calls f(row) for every row that counts: of each epoch the last ledger, executed calls only
// (direct and replayed; a captured call was not executed).
template <typename F>
void each_row(const read::Process& process, F&& f) {
  for (const auto& [epoch, ledger] : process.ledgers) {
    for (const read::Row& row : ledger.rows) {
      if (row.mode != Mode::captured) f(row);
    }
  }
}

Buckets bucket_totals(const read::Process& process);
void add_ops(Ops& ops, const read::Process& process);
read::Amounts sum(const Buckets& buckets);

}  // namespace tprof::stats
