// Tells what a step would be shorter by if some ranks were as quick as others: the job is replayed
// with their kernels as long as the usual rank's, or with their hosts as quick at each place of a
// step as the usual host there. That is another rank of their stage, or where they are late in some
// steps only, their own in the others.
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
    // A host's place in the step: before which call, and at which time that work goes on before
    // that. 0: it makes the call; UINT32_MAX: it does so when it has waited.
    std::uint32_t call = 0;
    std::uint32_t gap = 0;
    bool behind_call = false;  // work went on when a call had ended
    double usual_ns = 0;       // of a host: the median of its steps at this place
    double as_others = 1;  // of a host: times of it that the usual host takes there, on the average
  };

  void find_edges();
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
