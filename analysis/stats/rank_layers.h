// The units and buckets of one rank, and which of its calls are theirs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "stats/layer_names.h"
#include "stats/passes.h"

namespace tprof::stats {

struct RankRow {
  bool unit = false;
  CallKind call{};  // its first call
  RowNames names{};
};

struct CommLayers {
  std::int64_t comm = -1;
  std::vector<RankRow> rows{};  // units, then buckets
};

struct RankLayers {
  struct Place {
    std::size_t comm = 0;  // index into `comms`
    std::size_t row = 0;
    LayerOp op = LayerOp::forward;
  };
  std::vector<CommLayers> comms{};
  std::map<std::uint32_t, Place> places{};  // by the call's index
  std::map<std::uint32_t, NoLayer> none{};  // calls in passes that are in no row
};

// `carriers`: communicators that may carry parameters.
RankLayers layers_of(const LayerCalls& rank, const Passes& passes,
                     const std::set<std::int64_t>& carriers);

}  // namespace tprof::stats
