#include "graph/places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "run/quantile.h"
#include "text/kept.h"

namespace tprof::graph {
namespace {

using Rows = std::vector<std::size_t>;

// Converts between a moment and how much a device had computed by then.
class Work {
 public:
  explicit Work(const run::Intervals& all) : all_(all) {
    for (const run::Interval& w : all) done_ns_.push_back(done_ns_.back() + w.ns());
  }
  std::int64_t until(std::int64_t at_ns) const {
    const auto w = std::ranges::upper_bound(all_, at_ns, {}, &run::Interval::from_ns);
    if (w == all_.begin()) return 0;
    const auto k = static_cast<std::size_t>(w - all_.begin());
    return done_ns_[k] - std::max<std::int64_t>(0, std::prev(w)->to_ns - at_ns);
  }
  bool computes(std::int64_t at_ns) const {
    const auto w = std::ranges::upper_bound(all_, at_ns, {}, &run::Interval::from_ns);
    return w != all_.begin() && std::prev(w)->to_ns > at_ns;
  }
  // Returns the first moment at which so much was done.
  std::int64_t when(std::int64_t done_ns) const {
    const auto k = std::ranges::lower_bound(done_ns_, done_ns) - done_ns_.begin();
    if (k == 0 || k > std::ssize(all_)) return kNoWork;
    return all_[static_cast<std::size_t>(k - 1)].to_ns -
           (done_ns_[static_cast<std::size_t>(k)] - done_ns);
  }

 private:
  const run::Intervals& all_;
  std::vector<std::int64_t> done_ns_{0};  // before each interval, then the total
};

// The calls that a rank made in a step, and its device's work for them: from when the previous
// step's last call came until this step's last call came.
struct StepCalls {
  std::uint32_t rank = 0;
  std::vector<text::Kept> names{};  // of the calls
  Rows rows{};                      // by when they were called
  std::int64_t from_ns = 0;
  std::int64_t ns = 0;
};

std::vector<StepCalls> steps_of(const run::Run& run, std::uint32_t r, const Work& work) {
  const run::Rank& rank = run.ranks[r];
  const run::Calls& c = rank.calls;
  std::map<const run::Step*, Rows> by_step;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const run::Step* step = c.copies(i) ? nullptr : run::step_at(rank.steps, c.called_ns[i]);
    if (step != nullptr) by_step[step].push_back(i);
  }
  std::vector<StepCalls> all;
  std::optional<std::int64_t> from_ns;
  for (auto& [step, rows] : by_step) {
    std::ranges::stable_sort(rows, {}, [&](std::size_t i) { return c.called_ns[i]; });
    StepCalls of{.rank = r};
    std::int64_t last_ns = 0;
    for (const std::size_t i : rows) {
      of.names.push_back(c.name[i]);
      last_ns = std::max(last_ns, c.came_ns[i]);
    }
    const std::int64_t to_ns = work.until(last_ns);
    of.rows = std::move(rows);
    of.from_ns = from_ns.value_or(to_ns);
    of.ns = to_ns - of.from_ns;
    from_ns = to_ns;
    if (of.ns > 0) all.push_back(std::move(of));
  }
  return all;
}

// One call in all ranks and steps: the shares of a step's work that were done when it came and
// ended.
struct Shares {
  std::vector<double> ends{};      // when it ended; kStood: the device was idle
  std::vector<double> stood{};     // when it ended and the device was idle
  double without = 0;              // the median of `ends`
  std::optional<double> stands{};  // the median of `stood`, if the device was idle in most
  std::vector<double> seen{};      // when it came, having waited for its work alone
  std::vector<double> bound{};     // when it came otherwise: it needs no more; of the usual step
  double needs = 0;                // the share it needs, from these

  static constexpr double kStood = -1;

  void end_of_ends() {
    if (2 * stood.size() > ends.size()) stands = run::median(std::move(stood));
    without = run::median(std::move(ends));
  }
  void end() {
    needs = seen.empty() ? run::quantile(std::move(bound), run::kUsual) : run::median(seen);
  }
};

// Compares the work of a step with that of the usual step. Micro-batches of different lengths take
// different shares of it, but the device stands still for the same calls: between two of these the
// work is stretched evenly.
class Stretched {
 public:
  void add(double own, double usual) { marks_.emplace_back(own, usual); }
  void end() {
    std::ranges::sort(marks_);
    marks_.emplace_back(1, 1);
    std::vector<std::pair<double, double>> kept{{0, 0}};
    for (const auto& [own, usual] : marks_) {
      if (own > kept.back().first && usual > kept.back().second) kept.emplace_back(own, usual);
    }
    marks_ = std::move(kept);
  }
  double usual(double own) const { return moved(own, &Mark::first, &Mark::second); }
  double own(double usual) const { return moved(usual, &Mark::second, &Mark::first); }

 private:
  using Mark = std::pair<double, double>;

  double moved(double share, double Mark::*from, double Mark::*to) const {
    const auto next = std::ranges::upper_bound(marks_, share, {}, from);
    if (next == marks_.begin() || next == marks_.end()) return share;
    const Mark& before = *std::prev(next);
    const double part = (share - before.*from) / (*next.*from - before.*from);
    return before.*to + part * (*next.*to - before.*to);
  }

  std::vector<Mark> marks_;
};

class Places {
 public:
  Places(const run::Run& run, const std::vector<std::vector<std::int64_t>>& could_come_ns)
      : run_(run), could_come_ns_(could_come_ns) {
    for (std::uint32_t r = 0; r < run.ranks.size(); ++r) {
      works_.emplace_back(run.ranks[r].work);
      std::ranges::move(steps_of(run, r, works_[r]), std::back_inserter(steps_));
    }
    for (const StepCalls& step : steps_) look_at_ends(step);
    for (auto& [names, all] : shares_) std::ranges::for_each(all, &Shares::end_of_ends);
    for (const StepCalls& step : steps_) look_at(step);
    for (auto& [names, all] : shares_) std::ranges::for_each(all, &Shares::end);
  }

  Needs needs() const {
    Needs needs;
    for (std::uint32_t r = 0; r < run_.ranks.size(); ++r) {
      const run::Calls& c = run_.ranks[r].calls;
      needs.done_ns.emplace_back(c.size(), kNoWork);
      needs.assumed.emplace_back(c.size());
      needs.without_ns.emplace_back(c.size(), kNoWork);
      for (std::size_t i = 0; i < c.size(); ++i) {
        if (!queues_free(r, i)) continue;
        needs.done_ns[r][i] = c.came_ns[i];
        needs.assumed[r][i] = c.is[i].at_once;
      }
    }
    for (const StepCalls& step : steps_) put(step, needs);
    return needs;
  }

 private:
  bool queues_free(std::uint32_t r, std::size_t i) const {
    return run_.ranks[r].calls.came_ns[i] - could_come_ns_[r][i] > kGrainNs;
  }
  bool waits_for_work(const StepCalls& step, std::size_t i) const {
    return queues_free(step.rank, i) && !run_.ranks[step.rank].calls.is[i].at_once;
  }

  // When the call ended, less the grain, so that work that waited for it has not begun.
  std::int64_t ended_ns(const StepCalls& step, std::size_t n) const {
    return run_.ranks[step.rank].calls.ended_ns[step.rows[n]] - kGrainNs;
  }
  void look_at_ends(const StepCalls& step) {
    std::vector<Shares>& all = shares_[step.names];
    all.resize(step.rows.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
      const double done = share(step, ended_ns(step, n));
      const bool computes = works_[step.rank].computes(ended_ns(step, n));
      all[n].ends.push_back(computes ? done : Shares::kStood);
      if (!computes) all[n].stood.push_back(done);
    }
  }
  Stretched stretched(const StepCalls& step) const {
    Stretched stretched;
    const std::vector<Shares>& all = shares_.at(step.names);
    for (std::size_t n = 0; n < all.size(); ++n) {
      if (!all[n].stands || works_[step.rank].computes(ended_ns(step, n))) continue;
      stretched.add(share(step, ended_ns(step, n)), *all[n].stands);
    }
    stretched.end();
    return stretched;
  }

  void look_at(const StepCalls& step) {
    const Stretched to = stretched(step);
    std::vector<Shares>& all = shares_.at(step.names);
    for (std::size_t n = 0; n < all.size(); ++n) {
      const std::size_t i = step.rows[n];
      const double came = share(step, run_.ranks[step.rank].calls.came_ns[i]);
      waits_for_work(step, i) ? all[n].seen.push_back(came)
                              : all[n].bound.push_back(to.usual(came));
    }
  }
  double share(const StepCalls& step, std::int64_t at_ns) const {
    return static_cast<double>(works_[step.rank].until(at_ns) - step.from_ns) /
           static_cast<double>(step.ns);
  }
  // Returns the work done at this share of a step's work.
  static std::int64_t done_ns(const StepCalls& step, double share) {
    return step.from_ns + static_cast<std::int64_t>(share * static_cast<double>(step.ns));
  }

  // Fills in, for calls that are not seen to wait for their work, what other ranks and steps tell.
  void put(const StepCalls& step, Needs& needs) const {
    const Stretched from = stretched(step);
    const std::vector<Shares>& all = shares_.at(step.names);
    for (std::size_t n = 0; n < all.size(); ++n) {
      const std::size_t i = step.rows[n];
      const Work& work = works_[step.rank];
      if (all[n].without > 0) {
        needs.without_ns[step.rank][i] = work.when(done_ns(step, all[n].without));
      }
      const bool free = queues_free(step.rank, i);
      const bool seen = !all[n].seen.empty();
      if (waits_for_work(step, i) || (!free && !seen)) continue;
      if (seen) needs.assumed[step.rank][i] = false;
      const std::int64_t own = work.until(run_.ranks[step.rank].calls.came_ns[i]);
      const std::int64_t need = done_ns(step, seen ? all[n].needs : from.own(all[n].needs));
      // It may also need the end of a call that the work waited for.
      if (free && need > own - kGrainNs) continue;
      needs.done_ns[step.rank][i] = work.when(std::min(need, own));
    }
  }

  const run::Run& run_;
  const std::vector<std::vector<std::int64_t>>& could_come_ns_;  // by rank and row
  std::vector<Work> works_{};                                    // by rank
  std::vector<StepCalls> steps_{};
  std::map<std::vector<text::Kept>, std::vector<Shares>>
      shares_{};  // by the names of a step's calls
};

}  // namespace

Needs needs_of(const run::Run& run, const std::vector<std::vector<std::int64_t>>& could_come_ns) {
  return Places(run, could_come_ns).needs();
}

}  // namespace tprof::graph
