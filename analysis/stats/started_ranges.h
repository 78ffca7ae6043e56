// NVTX ranges that were started by themselves: a line where one begins, and another where it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "read/events.h"

namespace tprof::stats {

// Those of a process whose end has not come. Of more than so many nothing is known.
class StartedRanges {
 public:
  void start(const read::Range& r) {
    if (open_.size() < kMost) open_.try_emplace(r.id, r);
  }
  // When the one of this line began; nothing: not known.
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
