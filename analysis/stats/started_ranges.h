// NVTX ranges that were started by themselves: they have one line where they begin, and another
// where they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "read/events.h"

namespace tprof::stats {

// Those ranges of a process that have not ended yet. More than kMost are not kept.
class StartedRanges {
 public:
  void start(const read::Range& r) {
    if (open_.size() < kMost) open_.try_emplace(r.id, r);
  }
  // Returns when the range that this line ends began; nullopt if not known.
  std::optional<std::int64_t> end(const read::Range& r) {
    const auto began = open_.find(r.id);
    if (began == open_.end()) return std::nullopt;
    const std::int64_t ts_ns = began->second.ts_ns;
    open_.erase(began);
    return ts_ns;
  }
  const std::map<std::string, read::Range>& open() const { return open_; }  // by id

 private:
  static constexpr std::size_t kMost = 4096;
  std::map<std::string, read::Range> open_;
};

}  // namespace tprof::stats
