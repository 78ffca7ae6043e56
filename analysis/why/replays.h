// Tells what a step would be shorter by if some ranks were as quick as others: the job is replayed
// with their kernels as long as the usual rank's, their copies as quick as the usual rank's, or
// with their hosts as quick from each call of a step to the next as the usual host. That is another
// rank of their stage, or where they are late in some steps only, they themselves in the others.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "why/changes.h"
#include "why/slow_ranks.h"

namespace tprof::why {

class Replays {
 public:
  explicit Replays(const Evidence& e);  // which has a model

  // The ranks of each stage of a pipeline; none: it is none.
  const std::vector<Places>& stages() const { return stages_; }

  // By how much a step is shorter without what makes these ranks slow.
  Saving saves(const SlowRanks& ranks) const;
  // By how much each step is, by place in Evidence::steps.
  std::vector<double> saves_in_steps(const SlowRanks& ranks) const;
  std::vector<double> saves_alone(const SlowRanks& ranks) const;  // with nobody mended
  // By how much it is if all ranks of a stage computed as much in a step as the mean of them, with
  // micro-batches of equal length, and no host needed more than usually where the others did not.
  // `mended`: once those are mended that were told.
  std::vector<double> evened_out(bool mended) const;
  // So many ranks need most beyond their usual step, beyond what others do there, in some step.
  struct Turns {
    std::size_t ranks = 0;
    bool hosts = false;  // more of that is their hosts' than their kernels'
  };
  Turns take_turns() const;
  // They are as quick as others from here on.
  void mend(const SlowRanks& ranks);
  // The steps of the graph take so long with all who were mended, by place in Evidence::steps;
  // empty: nobody was.
  std::map<std::size_t, double> mended_ns() const;

  // For how long the middle one of these ranks computes in a step, or its host needs, beyond the
  // usual rank: the mean of the steps. No change of it can save more. 0 where chance may make it.
  double more_ns(const Places& ranks, Of of) const;
  // Transfers of a communicator take so much more in a step than in their usual one, by place in
  // Evidence::steps: the mean of its ranks.
  struct Comm {
    std::string id;
    std::set<std::size_t> ranks{};
    std::vector<double> more{};
  };
  const std::vector<Comm>& comms() const { return comms_; }
  // By how much it is more than in its own usual step, by place in Evidence::steps.
  // `beyond_others`: beyond what it is more on the others there.
  std::vector<double> more_in_steps(std::size_t rank, Of of, bool beyond_others = true) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // An edge of the graph on which a rank computes or its host goes on, and in which step.
  // There are as many as calls and kernels: steps are places in `places_`.
  struct Edge {
    std::uint32_t edge = 0;
    std::uint32_t rank = 0;  // of the evidence
    std::uint32_t step = kNone;
  };
  struct Computes : Edge {
    float as_even = 1;  // times of its lag, where ranks and micro-batches of its stage are even
  };
  struct Host : Edge {
    std::uint32_t from_step = kNone;
    std::uint32_t call = 0;  // the next one that it makes, as graph::Position has it
    std::uint32_t call_step = kNone;
    bool calls = false;  // it goes on to that from its last call
    // Times of its lag that it had if it were as quick as the usual rank on the average, or as it
    // is itself in the usual step.
    float as_others = 1;
    float as_usual = 1;
  };
  struct Transfer : Edge {
    std::uint32_t comm = 0;  // of comms_
    std::uint32_t call = 0;
    float as_usual = 1;
  };
  using Series = std::vector<double>;  // by step of `places_`

  static std::size_t index(Of of) { return static_cast<std::size_t>(of); }
  // Its device copies, as it has called for.
  bool copies(const Host& at) const { return model_.graph().wait[at.edge] == graph::Wait::copies; }
  std::uint32_t index_of(std::int64_t step) const;  // of places_
  void find_edges();
  void find_needs();
  void find_computed();
  void find_even_work();
  void find_usual_hosts();
  void find_usual_copies();
  void find_usual_transfers();
  graph::Position next_call(std::size_t rank, std::int64_t ns) const;
  bool is_ahead(std::size_t rank, std::int64_t from_ns, std::int64_t to_ns) const;
  std::set<std::int64_t> steps_of(const SlowRanks& ranks) const;  // empty: they are slow in all
  // The lags of a rank's kernels are so many times as long if it is as quick as it is itself in the
  // usual step.
  double as_usual(const Edge& computes) const;
  graph::Lags changed(const SlowRanks& ranks, graph::Lags lags) const;
  std::vector<double> saved(std::span<const graph::Lag> lags, const graph::StepsNs& before) const;

  const Evidence& e_;
  const graph::Model& model_;
  Places places_{};                   // of Evidence::steps: the steps that are in the graph
  std::vector<std::size_t> rank_of_;  // the evidence's, by rank of the run; SIZE_MAX: none
  std::vector<Places> stages_;
  std::vector<std::size_t> stage_of_;  // by rank; those whose stage is not known have one
  graph::Lags lags_;
  graph::StepsNs steps_ns_;  // as these lags make them
  std::vector<Computes> computes_{};
  std::vector<Host> hosts_{};
  std::vector<Transfer> transfers_{};
  std::vector<Comm> comms_{};
  std::vector<double> computes_ns_{};  // by rank, in a step, with these lags
  // By rank: for how long it computes, or its host needs.
  std::array<std::vector<Series>, 2> needs_{};
  std::array<std::vector<Series>, 2> beyond_{};  // of that, its own usual and the others' there
  // It needs so much beyond the usual rank of those that are alike, and beyond the middle one.
  std::array<std::vector<Series>, 3> more_{};
  std::array<std::vector<Series>, 3> more_than_middle_{};
};

}  // namespace tprof::why
