// Tells what a step of a pipeline would be shorter by if some ranks were as quick as others.
//
// The stages of a pipeline wait for each other anyway, so what a slow rank costs is not how much
// longer it takes. The job is replayed with the kernels of ranks as long as the usual rank's, or
// with their hosts as quick at each place of a step as the usual host there: that of another rank
// of their stage, or in some steps only, their own in the others.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "why/slow_ranks.h"

namespace tprof::why {

class Replays {
 public:
  // `stages`: the ranks of each. The evidence has a model.
  Replays(const Evidence& e, const std::vector<Places>& stages);

  // By how much a step is shorter without what makes these ranks slow, in ns.
  double saves(const SlowRanks& ranks) const;
  // By how much a step that is replayed without a change differs from the measured one.
  double error_ns() const;
  // They are as quick as others from here on.
  void mend(const SlowRanks& ranks);

  // Finds the ranks and `sets` of ranks whose devices cost most, each once those before it are
  // mended, until one saves less than `least_ns`; mends them. Returns what each saves.
  std::vector<std::pair<SlowRanks, double>> slow_devices(const std::vector<SlowRanks>& sets,
                                                         double least_ns);

 private:
  // An edge of the graph on which a rank computes or its host goes on, and in which step.
  struct Edge {
    std::uint32_t edge = 0;
    std::size_t rank = 0;  // of the evidence
    std::int64_t step = 0;
    // A host's place in the step: how many calls it has made, and how much launched since.
    std::uint32_t call = 0;
    std::uint32_t launch = 0;
    double usual_ns = 0;  // of a host: the median of its steps at this place
    double more_ns = 0;   // of a host: by which that is beyond the usual host's
  };

  void find_edges();
  void find_usual_hosts(const std::vector<Places>& stages);
  std::vector<double> changed(const SlowRanks& ranks) const;

  const Evidence& e_;
  const graph::Model& model_;
  std::vector<double> lags_;
  double step_ns_;
  double scale_;  // a step's length to that of a replayed one
  std::vector<Edge> work_{};
  std::vector<Edge> host_{};
  std::vector<double> work_ns_{};  // by rank: for how long it computes in a step
  double usual_work_ns_ = 0;
};

}  // namespace tprof::why
