#include "why/replays.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>

#include "check/agreement.h"
#include "interpose/format/ledger.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

std::map<const read::Process*, std::size_t> places_of(const Evidence& e) {
  std::map<const read::Process*, std::size_t> places;
  for (const read::Process* p : e.times.ranks) places.emplace(p, places.size());
  return places;
}

// By rank of the run: its place in the evidence; SIZE_MAX: it has none.
std::vector<std::size_t> ranks_of(const Evidence& e) {
  const auto places = places_of(e);
  std::vector<std::size_t> all;
  for (const run::Rank& rank : e.model->run().ranks) {
    const auto place = places.find(rank.process);
    all.push_back(place == places.end() ? SIZE_MAX : place->second);
  }
  return all;
}

// By rank: the pipeline that it is of. Those that send each other messages are of one.
std::vector<std::size_t> pipelines_of(const Evidence& e, std::span<const std::size_t> rank_of) {
  std::vector<std::size_t> of(e.times.ranks.size());
  std::iota(of.begin(), of.end(), std::size_t{0});
  const auto pipeline = [&](std::size_t r) {
    while (of[r] != r) r = of[r] = of[of[r]];
    return r;
  };
  const run::Run& run = e.model->run();
  for (std::size_t m = 0; m < run.meetings(); ++m) {
    const auto rows = run.meeting(m);
    if (!run.ranks[rows[0].rank].calls.is[rows[0].row].messages) continue;
    const std::size_t one = rank_of[rows[0].rank];
    for (const run::Row& row : rows) {
      const std::size_t other = rank_of[row.rank];
      if (one != SIZE_MAX && other != SIZE_MAX) of[pipeline(one)] = pipeline(other);
    }
  }
  for (std::size_t& r : of) r = pipeline(r);
  return of;
}

// The ranks of each stage of a pipeline: those of communicators of which each rank is of another
// pipeline, with all that have ranks in common. (The first and the last stage may have one as well,
// for weights that they share.)
std::vector<Places> stages_of(const Evidence& e, std::span<const std::size_t> rank_of) {
  const std::vector<std::size_t> pipelines = pipelines_of(e, rank_of);
  const auto places = places_of(e);
  std::vector<std::set<std::size_t>> all;
  const auto apart = [&](const std::set<std::size_t>& ranks) {
    std::set<std::size_t> of;
    for (const std::size_t r : ranks) of.insert(pipelines[r]);
    return ranks.size() > 1 && of.size() == ranks.size();
  };
  for (const check::Communicator& c : check::communicators(e.job)) {
    std::set<std::size_t> stage;
    for (const check::Member& m : c.members) {
      const auto place = places.find(m.process);
      if (place != places.end()) stage.insert(place->second);
    }
    if (!apart(stage) || !sends(e, *stage.begin())) continue;
    std::erase_if(all, [&](const std::set<std::size_t>& other) {
      if (std::ranges::none_of(other, [&](std::size_t r) { return stage.contains(r); }))
        return false;
      std::set<std::size_t> both = stage;
      both.insert(other.begin(), other.end());
      const bool one = apart(both);
      if (one) stage = std::move(both);
      return one;
    });
    all.push_back(std::move(stage));
  }
  std::vector<Places> stages;
  for (const auto& stage : all) stages.emplace_back(stage.begin(), stage.end());
  return stages;
}

// True if a rank that is like the others may be beyond the middle one by so much: its steps are far
// apart, and it is beyond in no more of them than chance makes one of `ranks` be, once in a hundred
// jobs (a coin's sides, by the normal approximation with its correction for whole numbers).
bool by_chance(const std::vector<double>& beyond_middle, std::size_t ranks) {
  constexpr double kTimesError = 6;
  if (median(beyond_middle) > kTimesError * median_error(beyond_middle)) return false;
  const auto n = static_cast<double>(beyond_middle.size());
  const auto more =
      static_cast<double>(std::ranges::count_if(beyond_middle, [](double ns) { return ns > 0; }));
  const double chance = std::erfc((more - 0.5 - n / 2) / std::sqrt(n / 2)) / 2;
  return chance * static_cast<double>(ranks) > 0.01;
}

// Returns for each of these ranks how much it needs in each step beyond the quantile of all of
// them.
std::vector<std::vector<double>> beyond(const std::vector<std::vector<double>>& needs,
                                        const std::vector<std::size_t>& ranks, double share) {
  std::vector<std::vector<double>> all;
  for (const std::size_t r : ranks) all.push_back(needs[r]);
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    std::vector<double> here;
    for (const auto& its : all) here.push_back(its[i]);
    const double usual = quantile(std::move(here), share);
    for (auto& its : all) its[i] -= usual;
  }
  return all;
}

}  // namespace

Replays::Replays(const Evidence& e)
    : e_(e),
      model_(*e.model),
      rank_of_(ranks_of(e)),
      stages_(stages_of(e, rank_of_)),
      stage_of_(e.times.ranks.size(), SIZE_MAX),
      lags_(model_.graph().lag_ns),
      steps_ns_(model_.replayed_ns()) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (const std::size_t r : stages_[s]) stage_of_[r] = s;
  }
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    if (steps_ns_.contains(e.times.steps[e.steps[i]])) places_.push_back(i);
  }
  find_edges();
  find_needs();
  find_usual_hosts();
  find_usual_copies();
  find_usual_transfers();
  find_even_work();
}

void Replays::find_edges() {
  const graph::Graph& g = model_.graph();
  for (graph::Node n = 0; n < g.size(); ++n) {
    const std::size_t rank = rank_of_[g.rank[n]];
    const graph::Position& at = model_.position(n);
    if (rank == SIZE_MAX || at.step == graph::Position::kNoStep) continue;
    for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
      const Edge edge{i, static_cast<std::uint32_t>(rank), index_of(at.step)};
      switch (g.wait[i]) {
        case graph::Wait::computes:
          computes_.push_back({edge});
          continue;
        case graph::Wait::barrier:
          if (is_ahead(g.rank[n], g.at_ns[g.from[i]], g.at_ns[n])) continue;
          break;
        case graph::Wait::host:
        case graph::Wait::launch:
        case graph::Wait::copies:
        case graph::Wait::waited:  // from then on it is the host's
          break;
        default:
          continue;
      }
      const graph::Position next = next_call(g.rank[n], g.at_ns[g.from[i]]);
      hosts_.push_back({edge, index_of(model_.step_at(g.rank[n], g.at_ns[g.from[i]])), next.call,
                        index_of(next.step), g.wait[i] == graph::Wait::host});
    }
  }
}

// The host did this next after that.
graph::Position Replays::next_call(std::size_t rank, std::int64_t ns) const {
  const graph::Graph& g = model_.graph();
  const auto next =
      std::ranges::upper_bound(g.host[rank], ns, {}, [&](graph::Node n) { return g.at_ns[n]; });
  return next == g.host[rank].end() ? graph::Position() : model_.position(*next);
}

// True if at `from_ns` the host had called what came to the device next behind `to_ns`: what the
// device did in between did not wait for it.
bool Replays::is_ahead(std::size_t rank, std::int64_t from_ns, std::int64_t to_ns) const {
  const run::Calls& c = model_.run().ranks[rank].calls;
  const auto next = std::ranges::upper_bound(c.came_ns, to_ns) - c.came_ns.begin();
  return next < std::ssize(c.came_ns) && c.called_ns[static_cast<std::size_t>(next)] <= from_ns;
}

std::uint32_t Replays::index_of(std::int64_t step) const {
  const auto number = [&](std::size_t place) { return e_.times.steps[e_.steps[place]]; };
  const auto at = std::ranges::lower_bound(places_, step, {}, number);
  return at == places_.end() || number(*at) != step
             ? kNone
             : static_cast<std::uint32_t>(at - places_.begin());
}

void Replays::find_needs() {
  for (const Of of : {Of::kernels, Of::host}) {
    auto& needs = needs_[index(of)];
    needs.assign(e_.times.ranks.size(), Series(places_.size()));
    const auto add = [&](const Edge& at) {
      if (at.step != kNone) needs[at.rank][at.step] += static_cast<double>(lags_[at.edge]);
    };
    if (of == Of::kernels) {
      std::ranges::for_each(computes_, add);
    } else {
      std::ranges::for_each(hosts_ | std::views::filter(&Host::calls), add);
    }
    const Places all = every_rank(e_);
    beyond_[index(of)] = beyond(needs, all, 0.5);
    for (Series& its : beyond_[index(of)]) {
      const double usual = quantile(its, run::kUsual);
      for (double& ns : its) ns -= usual;
    }
    // Hosts of a stage are compared with each other.
    std::map<std::size_t, std::vector<std::size_t>> alike;
    for (const std::size_t r : all) alike[of == Of::host ? stage_of_[r] : 0].push_back(r);
    for (auto* all_of : {&more_, &more_than_middle_}) {
      const double share = all_of == &more_ ? run::kUsual : 0.5;
      (*all_of)[index(of)].resize(needs.size());
      for (const auto& [stage, ranks] : alike) {
        std::vector<Series> more = beyond(needs, ranks, share);
        for (std::size_t k = 0; k < ranks.size(); ++k) {
          (*all_of)[index(of)][ranks[k]] = std::move(more[k]);
        }
      }
    }
  }
  find_computed();
}

void Replays::find_computed() {
  computes_ns_.assign(e_.times.ranks.size(), 0);
  for (const Computes& at : computes_) {
    if (at.step != kNone) computes_ns_[at.rank] += static_cast<double>(lags_[at.edge]);
  }
  for (double& ns : computes_ns_)
    ns /= static_cast<double>(std::max<std::size_t>(places_.size(), 1));
}

double Replays::more_ns(const Places& ranks, Of of) const {
  const auto of_middle_rank = [&](const std::vector<Series>& more) {
    Series all;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::vector<double> here;
      for (const std::size_t r : ranks) here.push_back(more[r][i]);
      all.push_back(median(std::move(here)));
    }
    return all;
  };
  const Series more = of_middle_rank(more_[index(of)]);
  const double ns = mean(more);
  const bool steady = 2 * median(more) > ns;
  const bool chance = by_chance(of_middle_rank(more_than_middle_[index(of)]), stage_of_.size());
  return steady && !chance ? std::max(0.0, ns) : 0;
}

std::vector<double> Replays::more_in_steps(std::size_t rank, Of of, bool beyond_others) const {
  const Series& its = (beyond_others ? beyond_ : needs_)[index(of)][rank];
  const double usual = quantile(its, run::kUsual);
  std::vector<double> more(e_.steps.size());
  for (std::size_t i = 0; i < places_.size(); ++i) more[places_[i]] = its[i] - usual;
  return more;
}

double Replays::as_usual(const Edge& at) const {
  const double needs = at.step == kNone ? 0 : needs_[index(Of::kernels)][at.rank][at.step];
  if (needs <= 0) return 1;
  return 1 - std::clamp(beyond_[index(Of::kernels)][at.rank][at.step] / needs, 0.0, 1.0);
}

void Replays::find_usual_hosts() {
  // A host needs so long from its last call to this one, in a step.
  struct Need {
    std::uint32_t rank = 0;
    std::uint32_t call = 0;
    std::uint32_t step = 0;
    double ns = 0;
    auto place() const { return std::tuple(rank, call, step); }
  };
  std::vector<Need> needs;
  for (const Host& at : hosts_) {
    if (!at.calls || at.call_step == kNone) continue;
    needs.push_back({at.rank, at.call, at.call_step, static_cast<double>(lags_[at.edge])});
  }
  std::ranges::stable_sort(needs, {}, &Need::place);
  // Copies are on its way from one call to the next.
  std::size_t kept = 0;
  for (const Need& need : needs) {
    if (kept != 0 && needs[kept - 1].place() == need.place()) {
      needs[kept - 1].ns += need.ns;
    } else {
      needs[kept++] = need;
    }
  }
  needs.resize(kept);
  struct Usual {
    double mean = 0;
    double median = 0;
  };
  std::map<std::pair<std::size_t, std::uint32_t>, Usual> usual;
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<double>> of_stage;
  for (auto from = needs.begin(); from != needs.end();) {
    std::vector<double> each;
    const auto [rank, call, step, ns] = *from;
    for (; from != needs.end() && from->rank == rank && from->call == call; ++from) {
      each.push_back(from->ns);
    }
    Usual& its = usual[{rank, call}];
    its.mean = mean(each);
    its.median = median(std::move(each));
    of_stage[{stage_of_[rank], call}].push_back(its.mean);
  }
  std::map<std::pair<std::size_t, std::uint32_t>, double> of_others;
  for (auto& [place, needs_of] : of_stage) of_others[place] = median(std::move(needs_of));
  // A rank needs less at some calls and more at others: chance makes both.
  std::vector<double> net(e_.times.ranks.size());
  std::vector<double> more(net.size());
  const auto beyond = [&](const std::pair<std::size_t, std::uint32_t>& place, const Usual& its) {
    return its.mean - of_others.at({stage_of_[place.first], place.second});
  };
  for (const auto& [place, its] : usual) {
    net[place.first] += beyond(place, its);
    more[place.first] += std::max(0.0, beyond(place, its));
  }
  for (Host& at : hosts_) {
    const auto its = usual.find({at.rank, at.call});
    if (its == usual.end() || its->second.mean <= 0) continue;
    const double ns = std::max(0.0, beyond(its->first, its->second));
    const double part = more[at.rank] <= 0 ? 0 : std::max(0.0, net[at.rank] / more[at.rank]);
    at.as_others = static_cast<float>(1 - ns / its->second.mean * part);
    const auto place = std::tuple(at.rank, at.call, at.call_step);
    const auto here = std::ranges::lower_bound(needs, place, {}, &Need::place);
    if (here != needs.end() && here->place() == place && here->ns > 0) {
      at.as_usual = static_cast<float>(std::min(1.0, its->second.median / here->ns));
    }
  }
}

// A byte of a direction and size takes as long as on the middle one of all ranks that copy such.
void Replays::find_usual_copies() {
  struct Took {
    double ns = 0;
    double bytes = 0;
  };
  using Size = std::pair<Bucket, std::int64_t>;  // of a copy: floor(log2(bytes))
  std::map<Size, std::map<std::uint32_t, Took>> of_ranks;
  std::vector<std::pair<Host*, Size>> all;
  const graph::Graph& g = model_.graph();
  for (Host& at : hosts_) {
    if (!copies(at)) continue;
    const auto node =
        static_cast<graph::Node>(std::ranges::upper_bound(g.first, at.edge) - g.first.begin() - 1);
    const run::Calls& c = model_.run().ranks[g.rank[node]].calls;
    const std::size_t row = g.row(node);
    const Size size{c.bucket[row], bytes_class(c.bytes[row])};
    Took& took = of_ranks[size][at.rank];
    took.ns += static_cast<double>(lags_[at.edge]);
    took.bytes += static_cast<double>(c.bytes[row]);
    all.emplace_back(&at, size);
  }
  std::map<Size, double> usual;
  for (const auto& [size, ranks] : of_ranks) {
    std::vector<double> each;
    for (const auto& [rank, took] : ranks) each.push_back(took.ns / took.bytes);
    usual[size] = median(std::move(each));
  }
  for (auto* more : {&more_, &more_than_middle_}) {
    (*more)[index(Of::copies)].assign(e_.times.ranks.size(), Series(places_.size()));
  }
  for (const auto& [at, size] : all) {
    const Took& took = of_ranks[size][at->rank];
    const double times = took.ns <= 0 ? 1 : usual[size] * took.bytes / took.ns;
    at->as_others = static_cast<float>(std::min(times, 1.0));
    if (at->step == kNone) continue;
    for (auto* more : {&more_, &more_than_middle_}) {
      (*more)[index(Of::copies)][at->rank][at->step] +=
          static_cast<double>(lags_[at->edge]) * (1 - times);
    }
  }
}

// A transfer takes as long as the usual one of the same call of a step.
void Replays::find_usual_transfers() {
  const graph::Graph& g = model_.graph();
  std::map<std::string, std::uint32_t> comms;
  std::vector<std::vector<std::vector<double>>> takes;  // by comm and call
  for (std::size_t r = 0; r < rank_of_.size(); ++r) {
    const run::Rank& rank = model_.run().ranks[r];
    const run::Calls& c = rank.calls;
    std::map<std::uint32_t, std::uint32_t> place;  // of comms_, by the rank's own number
    for (std::size_t row = 0; row < c.size() && rank_of_[r] != SIZE_MAX; ++row) {
      const graph::Position at = model_.position(g.called(r, row));
      const std::uint32_t step = index_of(at.step);
      if (step == kNone || !c.is[row].met) continue;
      const auto [found, fresh] = place.try_emplace(c.comm[row]);
      if (fresh) {
        const std::string& id = read::comm_of(*rank.process, c.comm[row])->id;
        found->second = comms.try_emplace(id, comms.size()).first->second;
        if (comms.size() > comms_.size()) {
          comms_.push_back({.id = id, .more = Series(places_.size())});
          takes.emplace_back();
        }
        comms_[found->second].ranks.insert(rank_of_[r]);
      }
      auto& of_call = takes[found->second];
      if (of_call.size() <= at.call) of_call.resize(at.call + 1);
      double ns = 0;
      const graph::Node n = g.ended(r, row);
      for (std::uint32_t i = g.first[n]; i < g.first[n + 1]; ++i) {
        transfers_.push_back(
            {{i, static_cast<std::uint32_t>(rank_of_[r]), step}, found->second, at.call});
        if (g.wait[i] == graph::Wait::meeting) ns = static_cast<double>(lags_[i]);
      }
      of_call[at.call].push_back(ns);
      comms_[found->second].more[step] += ns;
    }
  }
  std::vector<std::vector<double>> usual;
  for (auto& of_comm : takes) {
    usual.emplace_back();
    for (auto& each : of_comm) {
      usual.back().push_back(quantile(std::exchange(each, {}), run::kUsual));
    }
  }
  for (Transfer& at : transfers_) {
    const auto ns = static_cast<double>(lags_[at.edge]);
    const double should = usual[at.comm][at.call];
    if (ns > should) at.as_usual = static_cast<float>(should / ns);
  }
  for (Comm& comm : comms_) {
    const Series takes_ns = std::exchange(comm.more, Series(e_.steps.size()));
    const double in_usual = quantile(takes_ns, run::kUsual);
    for (std::size_t i = 0; i < takes_ns.size(); ++i) {
      comm.more[places_[i]] = (takes_ns[i] - in_usual) / static_cast<double>(comm.ranks.size());
    }
  }
}

std::set<std::int64_t> Replays::steps_of(const SlowRanks& ranks) const {
  std::set<std::int64_t> steps;
  for (const std::size_t place : ranks.steps) steps.insert(e_.times.steps[e_.steps[place]]);
  return steps;
}

graph::Lags Replays::changed(const SlowRanks& ranks, graph::Lags lags) const {
  std::vector<bool> in(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    in[i] = std::ranges::binary_search(ranks.steps, places_[i]);
  }
  const auto is_in = [&](std::uint32_t step) { return step != kNone && in[step]; };
  const auto is_slow = [&](const Edge& at) {
    return std::ranges::binary_search(ranks.slow, at.rank);
  };
  const auto take = [&](const Edge& at, double times) {
    lags[at.edge] *= static_cast<graph::Lag>(times);
  };
  if (ranks.of == Of::transfers) {
    for (const Transfer& at : transfers_) {
      const bool its = ranks.comm.empty() || comms_[at.comm].id == ranks.comm;
      if (its && is_in(at.step)) take(at, at.as_usual);
    }
    return lags;
  }
  if (ranks.of != Of::kernels) {
    for (const Host& at : hosts_) {
      if (!is_slow(at)) continue;
      if (ranks.steps.empty() && copies(at) == (ranks.of == Of::copies))
        take(at, ranks.alone ? 0 : at.as_others);
      // A lag between two steps may be of either.
      if (is_in(at.from_step) || is_in(at.step)) take(at, at.as_usual);
    }
    return lags;
  }
  double all_ns = 0;
  std::vector<double> others;
  for (std::size_t r = 0; r < computes_ns_.size(); ++r) {
    const bool slow = std::ranges::binary_search(ranks.slow, r);
    slow ? void(all_ns += computes_ns_[r]) : others.push_back(computes_ns_[r]);
  }
  const double usual = median(std::move(others));
  const auto as_others = [&](double ns) { return ns > usual ? usual / ns : 1; };
  // All of a host or stage are quicker by the same, and differ as before.
  const double as_mean = as_others(all_ns / static_cast<double>(ranks.slow.size()));
  const bool together = ranks.named && as_mean < 1;
  for (const Computes& at : computes_) {
    if (!is_slow(at)) continue;
    if (ranks.steps.empty()) take(at, together ? as_mean : as_others(computes_ns_[at.rank]));
    if (is_in(at.step)) take(at, as_usual(at));
  }
  return lags;
}

Saving Replays::saves(const SlowRanks& ranks) const {
  return saving_of(model_, steps_ns_, model_.replayed_ns(changed(ranks, lags_)), steps_of(ranks));
}

std::vector<double> Replays::saves_in_steps(const SlowRanks& ranks) const {
  return saved(changed(ranks, lags_), steps_ns_);
}

std::vector<double> Replays::saves_alone(const SlowRanks& ranks) const {
  return saved(changed(ranks, model_.graph().lag_ns), model_.replayed_ns());
}

std::vector<double> Replays::evened_out(bool mended) const {
  graph::Lags lags = mended ? lags_ : model_.graph().lag_ns;
  for (const Host& at : hosts_) {
    if (at.step != kNone && beyond_[index(Of::host)][at.rank][at.step] > 0) {
      lags[at.edge] *= at.as_usual;
    }
  }
  for (const Computes& at : computes_) lags[at.edge] *= at.as_even;
  return saved(lags, mended ? steps_ns_ : model_.replayed_ns());
}

Replays::Turns Replays::take_turns() const {
  std::set<std::size_t> ranks;
  double hosts = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto beyond = [&](std::size_t r) { return beyond_[0][r][i] + beyond_[1][r][i]; };
    std::size_t most = 0;
    for (std::size_t r = 1; r < stage_of_.size(); ++r) {
      if (beyond(r) > beyond(most)) most = r;
    }
    ranks.insert(most);
    hosts += beyond_[1][most][i] - beyond_[0][most][i];
  }
  return {ranks.size(), hosts > 0};
}

std::vector<double> Replays::saved(std::span<const graph::Lag> lags,
                                   const graph::StepsNs& before) const {
  const graph::StepsNs behind = model_.replayed_ns(lags);
  std::vector<double> saved(e_.steps.size());
  for (const std::size_t i : places_) {
    const std::int64_t step = e_.times.steps[e_.steps[i]];
    saved[i] = before.at(step) - behind.at(step);
  }
  return saved;
}

std::map<std::size_t, double> Replays::mended_ns() const {
  std::map<std::size_t, double> all;
  if (lags_ == model_.graph().lag_ns) return all;
  for (const std::size_t i : places_) all[i] = steps_ns_.at(e_.times.steps[e_.steps[i]]);
  return all;
}

void Replays::mend(const SlowRanks& ranks) {
  lags_ = changed(ranks, lags_);
  find_computed();
  steps_ns_ = model_.replayed_ns(lags_);
  find_even_work();
  if (!ranks.steps.empty()) return;
  for (const std::size_t r : ranks.slow) std::ranges::fill(more_[index(ranks.of)][r], 0.0);
}

}  // namespace tprof::why
