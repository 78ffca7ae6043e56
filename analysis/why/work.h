// How much the ranks compute from one place of a step to the next. A place is where a call waits
// for work, where work waits for a call, or the step's end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "why/edges.h"

namespace tprof::why {

class Work {
 public:
  // A call number, and whether its end is meant.
  using CallOf = std::pair<std::uint32_t, bool>;
  // A rank computes this up to a place, on the kernel edges `from` up to `to`.
  struct Stretch {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    CallOf place{};  // at its end
    double ns = 0;
    double done_ns = 0;  // of its step, until then
  };

  Work(const Evidence& e, const Edges& of);
  // The kernels take as long as these lags from here on.
  void take(const graph::Lags& lags, const Edges& of);

  // Sets Edge::as_usual of the kernels; Edge::as_ideal.
  void find_usual(Edges& of) const;
  void find_even(Edges& of) const;
  // Makes the kernels of these ranks take as long as the usual other rank's of their stage between
  // the same two places; if they are a whole stage, as long as other stages' in total.
  void as_others(const Slow& slow, const Edges& of, graph::Lags& lags) const;

 private:
  using ByPlace = std::map<CallOf, double>;

  // Returns by what the rank's kernels up to each place have to be multiplied; empty: by nothing.
  ByPlace times_as_others(const Slow& slow, std::size_t rank) const;

  // From one place that all ranks of the stage pass in all steps to the next.
  struct Compared {
    std::uint32_t from = 0;
    std::size_t last = 0;  // the stretch that ends there
  };

  Places role_of_;
  Places stage_of_;
  std::map<std::size_t, std::size_t> ranks_of_stage_{};
  std::vector<Stretch> stretches_;  // by rank and step; the last of a step ends there
  std::vector<Compared> compared_{};
  std::vector<ByPlace> done_{};  // by rank: the step's work until then, a mean over steps
};

}  // namespace tprof::why
