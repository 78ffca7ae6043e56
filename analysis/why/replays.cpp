#include "why/replays.h"

#include <algorithm>
#include <cmath>

#include "why/numbers.h"

namespace tprof::why {
namespace {

// True if chance may put a normal rank that far beyond the median: its steps vary widely, and it is
// beyond in no more steps than the worst of `ranks` fair coins shows heads.
bool by_chance(const std::vector<double>& beyond_middle, std::size_t ranks) {
  constexpr double kTimesError = 6;
  if (median(beyond_middle) > kTimesError * median_error(beyond_middle)) return false;
  const auto more = std::ranges::count_if(beyond_middle, [](double ns) { return ns > 0; });
  const double chance = chance_of(static_cast<std::size_t>(more), beyond_middle.size(), 0.5);
  return chance * static_cast<double>(ranks) > kChance;
}

// Returns the median of these ranks in each step.
Series of_middle_rank(const std::vector<Series>& all, const Places& ranks) {
  Series middle;
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    std::vector<double> here;
    for (const std::size_t r : ranks) here.push_back(all[r][i]);
    middle.push_back(median(std::move(here)));
  }
  return middle;
}

}  // namespace

Replays::Replays(const Evidence& e)
    : e_(e),
      model_(*e.model),
      edges_(edges_of(e)),
      lags_(model_.graph().lag_ns),
      steps_ns_(model_.replayed_ns()) {
  find_computed();
  find_even_work(e, lags_, edges_);
}

void Replays::find_computed() {
  computes_ns_.assign(e_.times.ranks.size(), 0);
  for (const Edge& at : edges_.of(Of::kernels)) {
    if (at.step != Edge::kNone) computes_ns_[at.owner] += static_cast<double>(lags_[at.edge]);
  }
  for (double& ns : computes_ns_) {
    ns /= static_cast<double>(std::max<std::size_t>(edges_.steps.size(), 1));
  }
}

double Replays::more_ns(const Places& ranks, Of of) const {
  const Needs& needs = edges_.needs_of(of);
  const Series more = of_middle_rank(needs.more, ranks);
  const double ns = mean(more);
  const bool steady = 2 * median(more) > ns;
  const bool chance =
      by_chance(of_middle_rank(needs.more_than_middle, ranks), e_.times.ranks.size());
  return steady && !chance ? std::max(0.0, ns) : 0;
}

std::vector<double> Replays::more_in_steps(std::size_t owner, Of of, bool beyond_others) const {
  const Needs& needs = edges_.needs_of(of);
  const Series& its = (beyond_others ? needs.beyond : needs.all)[owner];
  const double usual = quantile(its, run::kUsual);
  std::vector<double> more(e_.steps.size());
  for (std::size_t i = 0; i < its.size(); ++i) more[edges_.steps[i]] = its[i] - usual;
  return more;
}

std::set<std::int64_t> Replays::steps_of(const Slow& slow) const {
  std::set<std::int64_t> steps;
  for (const std::size_t place : slow.steps) steps.insert(e_.times.steps[e_.steps[place]]);
  return steps;
}

std::vector<double> Replays::as_others(const Slow& slow) const {
  double all_ns = 0;
  std::vector<double> others;
  for (std::size_t r = 0; r < computes_ns_.size(); ++r) {
    slow.has(r) ? void(all_ns += computes_ns_[r]) : others.push_back(computes_ns_[r]);
  }
  const double usual = median(std::move(others));
  const auto times = [&](double ns) { return ns > usual ? usual / ns : 1; };
  // All ranks of a host or stage get the same factor, and keep their differences.
  const double of_mean = times(all_ns / static_cast<double>(slow.ranks.size()));
  const bool together = slow.named && of_mean < 1;
  std::vector<double> all;
  for (const double ns : computes_ns_) all.push_back(together ? of_mean : times(ns));
  return all;
}

graph::Lags Replays::changed(const Slow& slow, graph::Lags lags) const {
  std::vector<bool> in(edges_.steps.size());
  for (std::size_t i = 0; i < edges_.steps.size(); ++i) {
    in[i] = std::ranges::binary_search(slow.steps, edges_.steps[i]);
  }
  const auto is_in = [&](std::uint32_t step) { return step != Edge::kNone && in[step]; };
  const bool always = slow.steps.empty();
  const bool kernels = always && slow.of == Of::kernels;
  const std::vector<double> of_kernels = kernels ? as_others(slow) : std::vector<double>();
  const auto change = [&](Of of) {
    for (const Edge& at : edges_.of(of)) {
      if (!slow.has(at.owner) || !(always || is_in(at.step) || is_in(at.from_step))) continue;
      const double times = !always      ? static_cast<double>(at.as_usual)
                           : slow.alone ? 0.0
                           : kernels    ? of_kernels[at.owner]
                                        : static_cast<double>(at.as_others);
      lags[at.edge] *= static_cast<graph::Lag>(times);
    }
  };
  change(slow.of);
  // In single steps copies may also make a host late.
  if (slow.of == Of::host && !always) change(Of::copies);
  return lags;
}

Saving Replays::saves(const Slow& slow) const {
  return saving_of(model_, steps_ns_, model_.replayed_ns(changed(slow, lags_)), steps_of(slow));
}

std::vector<double> Replays::saves_in_steps(const Slow& slow) const {
  return saved(changed(slow, lags_), steps_ns_);
}

std::vector<double> Replays::saves_alone(const Slow& slow) const {
  return saved(changed(slow, model_.graph().lag_ns), model_.replayed_ns());
}

std::vector<double> Replays::evened_out(bool mended, const Places& ranks) const {
  std::vector<bool> changes(e_.times.ranks.size());
  for (const std::size_t r : ranks) changes[r] = true;
  graph::Lags lags = mended ? lags_ : model_.graph().lag_ns;
  const Needs& hosts = edges_.needs_of(Of::host);
  for (const Of of : {Of::host, Of::copies}) {
    for (const Edge& at : edges_.of(of)) {
      const bool late =
          changes[at.owner] && at.step != Edge::kNone && hosts.beyond[at.owner][at.step] > 0;
      if (late) lags[at.edge] *= at.as_usual;
    }
  }
  for (const Edge& at : edges_.of(Of::kernels)) {
    if (changes[at.owner]) lags[at.edge] *= at.as_even;
  }
  return saved(lags, mended ? steps_ns_ : model_.replayed_ns());
}

std::vector<Replays::Turn> Replays::turns() const {
  const std::vector<Series>& kernels = edges_.needs_of(Of::kernels).beyond;
  const std::vector<Series>& hosts = edges_.needs_of(Of::host).beyond;
  std::vector<Turn> all;
  for (std::size_t i = 0; i < edges_.steps.size(); ++i) {
    const auto beyond = [&](std::size_t r) { return kernels[r][i] + hosts[r][i]; };
    const std::size_t most = std::ranges::max(every_rank(e_), {}, beyond);
    all.push_back({edges_.steps[i], most, kernels[most][i], hosts[most][i]});
  }
  return all;
}

std::vector<double> Replays::saved(std::span<const graph::Lag> lags,
                                   const graph::StepsNs& before) const {
  const graph::StepsNs behind = model_.replayed_ns(lags);
  std::vector<double> saved(e_.steps.size());
  for (const std::size_t i : edges_.steps) {
    const std::int64_t step = e_.times.steps[e_.steps[i]];
    saved[i] = before.at(step) - behind.at(step);
  }
  return saved;
}

std::map<std::size_t, double> Replays::mended_ns() const {
  std::map<std::size_t, double> all;
  if (lags_ == model_.graph().lag_ns) return all;
  for (const std::size_t i : edges_.steps) all[i] = steps_ns_.at(e_.times.steps[e_.steps[i]]);
  return all;
}

void Replays::mend(const Slow& slow) {
  lags_ = changed(slow, lags_);
  find_computed();
  steps_ns_ = model_.replayed_ns(lags_);
  find_even_work(e_, lags_, edges_);
  if (!slow.steps.empty()) return;
  Needs& needs = edges_.needs[Edges::index(slow.of)];
  for (const std::size_t r : slow.ranks) std::ranges::fill(needs.more[r], 0.0);
}

}  // namespace tprof::why
