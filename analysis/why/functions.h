// The buckets of a rank's functions of NCCL, as its ledger has them: lines of device times have
// names only.
#pragma once

#include <utility>
#include <vector>

#include "interpose/format/buckets.h"
#include "read/process.h"

namespace tprof::why {

class Functions {
 public:
  explicit Functions(const read::Process& rank) {
    for (const read::Row& row : read::rows_of(rank)) {
      if (!is_copy(row.bucket) && of(row.name) == nullptr) all_.emplace_back(row.name, row.bucket);
    }
  }

  // Null: it is none.
  const Bucket* of(text::Kept name) const {
    for (const auto& [known, bucket] : all_) {
      if (known == name) return &bucket;
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<text::Kept, Bucket>> all_;  // few
};

}  // namespace tprof::why
