#include "why/replays.h"

#include <algorithm>
#include <cmath>

#include "why/numbers.h"

namespace tprof::why {
namespace {

// True if chance may put a normal one that far beyond the median: its steps vary widely, and it is
// beyond in no more steps than the worst of `owners` fair coins shows heads.
bool by_chance(const std::vector<double>& beyond_middle, std::size_t owners) {
  constexpr double kTimesError = 6;
  if (median(beyond_middle) > kTimesError * median_error(beyond_middle)) return false;
  const auto more = std::ranges::count_if(beyond_middle, [](double ns) { return ns > 0; });
  const double chance = chance_of(static_cast<std::size_t>(more), beyond_middle.size(), 0.5);
  return chance * static_cast<double>(owners) > kChance;
}

// Returns the median of these in each step.
Series of_middle(const std::vector<Series>& all, const Places& owners) {
  Series middle;
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    std::vector<double> here;
    for (const std::size_t owner : owners) here.push_back(all[owner][i]);
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
      steps_ns_(model_.replayed_ns()),
      work_(e, edges_) {
  work_.take(lags_, edges_);
  work_.find_usual(edges_);
  work_.find_even(edges_);
}

double Replays::more_ns(const Places& owners, Of of) const {
  const Needs& needs = edges_.needs_of(of);
  const Series more = of_middle(needs.more, owners);
  const double ns = mean(more);
  const bool steady = 2 * median(more) > ns;
  const bool chance = by_chance(of_middle(needs.more_than_middle, owners), needs.more.size());
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

graph::Lags Replays::changed(const Slow& slow, graph::Lags lags) const {
  std::vector<bool> in(edges_.steps.size());
  for (std::size_t i = 0; i < edges_.steps.size(); ++i) {
    in[i] = std::ranges::binary_search(slow.steps, edges_.steps[i]);
  }
  const auto is_in = [&](std::uint32_t step) { return step != Edge::kNone && in[step]; };
  const bool always = slow.steps.empty();
  if (always && slow.of == Of::kernels) {
    work_.as_others(slow, edges_, lags);
    return lags;
  }
  const auto change = [&](Of of) {
    for (const Edge& at : edges_.of(of)) {
      if (!slow.has(at.owner) || !(always || is_in(at.step) || is_in(at.from_step))) continue;
      const double times = !always      ? static_cast<double>(at.as_usual)
                           : slow.alone ? static_cast<double>(at.as_ideal)
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

graph::Lags Replays::even(const Places& ranks, graph::Lags lags, const Places& but,
                          bool hosts_too) const {
  std::vector<bool> of_ranks(e_.times.ranks.size());
  for (const std::size_t r : ranks) of_ranks[r] = true;
  const auto changes = [&](const Edge& at) {
    return of_ranks[at.owner] &&
           (at.step == Edge::kNone || !std::ranges::binary_search(but, edges_.steps[at.step]));
  };
  const Needs& hosts = edges_.needs_of(Of::host);
  for (const Of of : {Of::host, Of::copies}) {
    for (const Edge& at : edges_.of(of)) {
      const bool late =
          hosts_too && changes(at) && at.step != Edge::kNone && hosts.beyond[at.owner][at.step] > 0;
      if (late) lags[at.edge] *= at.as_usual;
    }
  }
  for (const Edge& at : edges_.of(Of::kernels)) {
    if (changes(at)) lags[at.edge] *= at.as_ideal;
  }
  return lags;
}

std::vector<double> Replays::evened_out(bool mended, const Places& ranks, bool hosts_too) const {
  return saved(even(ranks, mended ? lags_ : model_.graph().lag_ns, {}, hosts_too),
               mended ? steps_ns_ : model_.replayed_ns());
}

void Replays::even_out(const Places& ranks, const Places& but) {
  lags_ = even(ranks, std::move(lags_), but);
  steps_ns_ = model_.replayed_ns(lags_);
}

std::vector<Replays::Turn> Replays::turns() const {
  const std::vector<Series>& kernels = edges_.needs_of(Of::kernels).beyond;
  const std::vector<Series>& hosts = edges_.needs_of(Of::host).beyond;
  std::vector<Turn> all;
  for (std::size_t i = 0; i < edges_.steps.size(); ++i) {
    const auto beyond = [&](std::size_t r) { return kernels[r][i] + hosts[r][i]; };
    const std::size_t most = std::ranges::max(every_rank(e_), {}, beyond);
    all.push_back({edges_.steps[i], most});
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
  steps_ns_ = model_.replayed_ns(lags_);
  work_.take(lags_, edges_);
  work_.find_even(edges_);
  if (!slow.steps.empty()) return;
  Needs& needs = edges_.needs[Edges::index(slow.of)];
  for (const std::size_t owner : slow.owners()) std::ranges::fill(needs.more[owner], 0.0);
}

}  // namespace tprof::why
