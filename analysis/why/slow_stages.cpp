// Devices of a pipeline that compute longer than others: a rank, or a stage.
//
// The stages of a pipeline wait for each other anyway, so what a slow one costs is not how much
// longer it computes. The job is replayed with the kernels of a rank, or of all ranks of a stage,
// as long as the usual rank's. Who saves most is told, and the others by what they save once that
// is mended.
#include <algorithm>
#include <functional>
#include <numeric>

#include "why/causes.h"
#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

constexpr std::size_t kMostRanks = 16;  // are tried by themselves: those that compute longest

// The job as it would be with some ranks' kernels changed.
class Replays {
 public:
  explicit Replays(const graph::Model& model) : model_(model), lags_(model.graph().lag_ns) {
    step_ns_ = model.replayed_ns();
    for (std::size_t r = 0; r < model.run().ranks.size(); ++r) work_.push_back(model.work_ns(r));
    usual_ = quantile(work_, kUsual);
  }

  bool longer(std::size_t rank) const { return work_[rank] > usual_; }
  double work(std::size_t rank) const { return work_[rank]; }

  // By this a step is shorter, if the kernels of these ranks are as long as the usual rank's.
  double saves(const Places& ranks) const {
    return step_ns_ - model_.step_ns(replay(model_.graph(), changed(ranks)));
  }
  void mend(const Places& ranks) {
    lags_ = changed(ranks);
    step_ns_ = model_.step_ns(replay(model_.graph(), lags_));
    for (const std::size_t r : ranks) work_[r] = std::min(work_[r], usual_);
  }

 private:
  std::vector<double> changed(const Places& ranks) const {
    std::vector<double> times(work_.size(), 1);
    for (const std::size_t r : ranks) times[r] = std::min(1.0, usual_ / work_[r]);
    const graph::Graph& g = model_.graph();
    std::vector<double> lags = lags_;
    for (graph::Node n = 0; n < g.size(); ++n) {
      for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
        if (g.wait[i] == graph::Wait::computes) lags[i] *= times[g.rank[n]];
      }
    }
    return lags;
  }

  const graph::Model& model_;
  std::vector<double> lags_;
  double step_ns_;
  std::vector<double> work_;
  double usual_;
};

}  // namespace

std::vector<Mended> slow_stages(const graph::Model& model, const std::vector<Mended>& sets,
                                double least_ns) {
  Replays job(model);
  std::vector<Mended> found;
  while (true) {
    Places longest(model.run().ranks.size());
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::ranges::sort(longest, std::ranges::greater(), [&](std::size_t r) { return job.work(r); });
    longest.resize(std::min(longest.size(), kMostRanks));
    std::vector<Mended> tried;
    for (const std::size_t r : longest) {
      if (job.longer(r)) tried.push_back({{r}, false, job.saves({r})});
    }
    for (const Mended& set : sets) tried.push_back({set.ranks, set.stage, job.saves(set.ranks)});
    const auto most = std::ranges::max_element(tried, {}, &Mended::ns);
    if (most == tried.end() || most->ns < least_ns) return found;
    const double enough = most->ns - least_ns;
    // The fewest ranks that save nearly as much are to blame: the others are only beside them.
    std::erase_if(tried, [&](const Mended& m) { return m.ns < enough; });
    found.push_back(*std::ranges::min_element(
        tried, {}, [](const Mended& m) { return std::pair(m.ranks.size(), -m.ns); }));
    job.mend(found.back().ranks);
  }
}

}  // namespace tprof::why
