// Adds up the layers of ranks, and groups the ranks that have the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stats/comms.h"
#include "stats/layer_calls.h"
#include "stats/layer_names.h"
#include "stats/layers.h"

namespace tprof::stats {

using CommId = std::pair<std::string, std::int64_t>;  // of a communicator, and its size

// The ranks of a group have this in common: the size of a communicator, and its rows.
using Signature =
    std::pair<std::int64_t, std::vector<std::tuple<bool, std::uint64_t, std::string>>>;

// Ranks with the same key differ in nothing that decides to which group they belong.
struct CommKey {
  CommId id;
  Signature signature;
  std::vector<CommId> earlier;  // the rank's communicators before this one with the same signature

  auto operator<=>(const CommKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Sums over ranks.
struct CommSums {
  using Shown = std::pair<std::int64_t, std::int64_t>;

  void add(const CommSums& more);

  Shown shown{};  // the lowest rank, and its start: the rows have the sizes of its calls
  std::vector<std::int64_t> ranks{};
  std::uint64_t rank_steps = 0;
  std::vector<LayerRow> rows{};
  std::vector<RowNames> names{};
};

// The layers of one rank.
struct RankSums {
  std::vector<std::pair<CommKey, CommSums>> comms{};
  std::map<NoLayer, Buckets> left{};
};

// Adds up what ranks hand over. The ranks of a communicator gather the same. If they seem not to,
// the minority is wrong, or those that know of fewer rows.
class Merger {
 public:
  Merger(const StepList& asked, const std::vector<CommSummary>& comms, Layers& to)
      : asked_(asked), comms_(comms), to_(to) {}

  // Ranks may call it at the same time.
  RankSums sums_of(const read::Process& process, const LayerCalls& rank,
                   const std::vector<steps::Interval>& steps) const;

  void take(const RankSums& rank);

  void finish();

 private:
  std::map<CommId, Signature> agreed_ones() const;

  void leave(const CommSums& sums);

  StepList asked_;
  const std::vector<CommSummary>& comms_;
  Layers& to_;
  std::map<CommKey, CommSums> all_;
};

}  // namespace tprof::stats
