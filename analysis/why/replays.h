// Tells how much shorter a step would be if some ranks were as fast as others: replays the job with
// their kernels, their copies, or their hosts' time from one call to the next as long as the usual
// rank's. The usual rank is another of their stage or, if they are slow in some steps only, the
// rank itself in its other steps. Transfers of communicators likewise.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "why/changes.h"
#include "why/edges.h"
#include "why/slow_ranks.h"
#include "why/work.h"

namespace tprof::why {

class Replays {
 public:
  explicit Replays(const Evidence& e);  // needs a model

  const std::vector<Places>& stages() const { return edges_.stages; }
  const std::vector<Link>& links() const { return edges_.links; }

  // The edges' lags and the lengths of the graph's steps, after mend().
  const graph::Lags& lags() const { return lags_; }
  const graph::StepsNs& steps() const { return steps_ns_; }

  // By how much a step is shorter if these are not slow.
  Saving saves(const Slow& slow) const;
  // The same for each step, indexed as Evidence::steps.
  std::vector<double> saves_in_steps(const Slow& slow) const;
  std::vector<double> saves_alone(const Slow& slow) const;  // with no rank mended
  // The same if all ranks of a stage computed the stage's mean, in micro-batches of equal length,
  // and, if `hosts_too`, no host alone needed more than usually. Only hosts and kernels of `ranks`
  // change. `mended`: after mend().
  std::vector<double> evened_out(bool mended, const Places& ranks, bool hosts_too = true) const;
  // The worst rank of a step, compared with its own usual step and with the others in that step.
  struct Turn {
    std::size_t step = 0;  // place in Evidence::steps
    std::size_t rank = 0;
  };
  std::vector<Turn> turns() const;
  // From here on these are as fast as the others; evened out in all steps `but` these.
  void mend(const Slow& slow);
  void even_out(const Places& ranks, const Places& but);
  // The lengths of the graph's steps after mend(), by index into Evidence::steps; empty: nothing
  // was mended.
  std::map<std::size_t, double> mended_ns() const;

  // By how much the median of these ranks or links exceeds the usual one in this part of a step, as
  // a mean over steps: an upper bound of what they can save. 0 if it may be chance.
  double more_ns(const Places& owners, Of of) const;
  // By how much a rank, or a link, exceeds its own usual step, indexed as Evidence::steps.
  // `beyond_others`: less by what the other ranks need more in that step.
  std::vector<double> more_in_steps(std::size_t owner, Of of, bool beyond_others) const;

 private:
  std::set<std::int64_t> steps_of(const Slow& slow) const;  // empty: in all
  graph::Lags changed(const Slow& slow, graph::Lags lags) const;
  graph::Lags even(const Places& ranks, graph::Lags lags, const Places& but = {},
                   bool hosts_too = true) const;
  std::vector<double> saved(std::span<const graph::Lag> lags, const graph::StepsNs& before) const;

  const Evidence& e_;
  const graph::Model& model_;
  Edges edges_;
  graph::Lags lags_;
  graph::StepsNs steps_ns_;  // with these lags
  Work work_;                // with these lags
};

}  // namespace tprof::why
