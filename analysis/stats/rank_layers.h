// The units and buckets of one rank, and which of its calls are theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "stats/layers.h"
#include "stats/passes.h"

namespace tprof::stats {

struct RankLayers {
  struct Told {
    NoLayer none = NoLayer::behind;
    std::optional<std::pair<std::size_t, std::size_t>> row{};  // in which of `comms`, and there
    LayerOp op = LayerOp::forward;
  };
  std::vector<std::pair<std::int64_t, std::vector<LayerRow>>> comms{};  // without their figures
  std::vector<Told> told{};                                             // of each call
};

// `carriers`: communicators that may carry parameters.
RankLayers layers_of(const RankCalls& rank, const Passes& passes,
                     const std::set<std::int64_t>& carriers);

}  // namespace tprof::stats
