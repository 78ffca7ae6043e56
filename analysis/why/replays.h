// Tells what a step would be shorter by if some ranks were as quick as others: the job is replayed
// with their kernels as long as the usual rank's, or with their hosts as quick from each call of a
// step to the next as the usual host. That is another rank of their stage, or where they are late
// in some steps only, they themselves in the others.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "why/slow_ranks.h"

namespace tprof::why {

class Replays {
 public:
  // `stages`: the ranks of each. The evidence has a model.
  Replays(const Evidence& e, const std::vector<Places>& stages);

  // By how much a step is shorter without what makes these ranks slow.
  Saving saves(const SlowRanks& ranks) const;
  // They are as quick as others from here on.
  void mend(const SlowRanks& ranks);

  // Finds which of these ranks and `sets` of ranks have devices that cost most, each once those
  // before it are mended, until one saves less than `least_ns`; mends them. Returns what each
  // saves.
  std::vector<std::pair<SlowRanks, Saving>> slow_devices(const Places& slow,
                                                         const std::vector<SlowRanks>& sets,
                                                         double least_ns);

 private:
  // An edge of the graph on which a rank computes or its host goes on, and in which step.
  struct Edge {
    std::uint32_t edge = 0;
    std::size_t rank = 0;  // of the evidence
    std::int64_t step = 0;
    std::int64_t from_step = 0;
    graph::Position call{};  // of a host: the next one that it makes
    bool calls = false;      // of a host: it goes on to that from its last call
    // Times of a host's lag that it had if it went on to that call as quickly as the usual host on
    // the average, or as it does itself in the usual step.
    double as_others = 1;
    double as_usual = 1;
  };

  void find_edges();
  graph::Position next_call(std::size_t rank, std::int64_t ns) const;
  bool is_ahead(std::size_t rank, std::int64_t from_ns, std::int64_t to_ns) const;
  void find_usual_hosts(const std::vector<Places>& stages);
  std::set<std::int64_t> steps_of(const SlowRanks& ranks) const;  // empty: they are slow in all
  std::vector<double> changed(const SlowRanks& ranks) const;

  const Evidence& e_;
  const graph::Model& model_;
  std::vector<double> lags_;
  graph::StepsNs steps_ns_;  // as these lags make them
  std::vector<Edge> work_{};
  std::vector<Edge> host_{};
  std::vector<double> work_ns_{};  // by rank: for how long it computes in a step
  double usual_work_ns_ = 0;
};

}  // namespace tprof::why
