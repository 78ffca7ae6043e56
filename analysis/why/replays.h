// Tells what a step would be shorter by if some ranks were as quick as others: the job is replayed
// with their kernels as long as the usual rank's, their copies as quick as the usual rank's, or
// with their hosts as quick from each call of a step to the next as the usual host. That is another
// rank of their stage, or where they are late in some steps only, they themselves in the others.
// Transfers of communicators likewise.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "why/changes.h"
#include "why/edges.h"
#include "why/slow_ranks.h"

namespace tprof::why {

class Replays {
 public:
  explicit Replays(const Evidence& e);  // which has a model

  const std::vector<Places>& stages() const { return edges_.stages; }
  const std::vector<Comm>& comms() const { return edges_.comms; }

  // By how much a step is shorter without what makes these slow.
  Saving saves(const Slow& slow) const;
  // By how much each step is, by place in Evidence::steps.
  std::vector<double> saves_in_steps(const Slow& slow) const;
  std::vector<double> saves_alone(const Slow& slow) const;  // with nobody mended
  // By how much it is if all ranks of a stage computed as much in a step as the mean of them, with
  // micro-batches of equal length, and no host needed more than usually where the others did not.
  // `mended`: once those are mended that were told. Only the hosts and kernels of `ranks` change.
  std::vector<double> evened_out(bool mended, const Places& ranks) const;
  // The rank that in a step needs most beyond its usual one, beyond what others do there.
  struct Turn {
    std::size_t step = 0;  // place in Evidence::steps
    std::size_t rank = 0;
    double kernels_ns = 0;
    double hosts_ns = 0;
  };
  std::vector<Turn> turns() const;
  // They are as quick as others from here on.
  void mend(const Slow& slow);
  // The steps of the graph take so long with all who were mended, by place in Evidence::steps;
  // empty: nobody was.
  std::map<std::size_t, double> mended_ns() const;

  // For how long the middle one of these ranks computes in a step, or its host needs, beyond the
  // usual rank: the mean of the steps. No change of it can save more. 0 where chance may make it.
  double more_ns(const Places& ranks, Of of) const;
  // By how much a rank, or a communicator, needs more than in its own usual step, by place in
  // Evidence::steps. `beyond_others`: beyond what it is more on the other ranks there.
  std::vector<double> more_in_steps(std::size_t owner, Of of, bool beyond_others) const;

 private:
  std::vector<double> as_others(const Slow& slow) const;  // times, of kernels by rank
  void find_computed();
  std::set<std::int64_t> steps_of(const Slow& slow) const;  // empty: they are slow in all
  graph::Lags changed(const Slow& slow, graph::Lags lags) const;
  std::vector<double> saved(std::span<const graph::Lag> lags, const graph::StepsNs& before) const;

  const Evidence& e_;
  const graph::Model& model_;
  Edges edges_;
  graph::Lags lags_;
  graph::StepsNs steps_ns_;            // as these lags make them
  std::vector<double> computes_ns_{};  // by rank, in a step, with these lags
};

}  // namespace tprof::why
