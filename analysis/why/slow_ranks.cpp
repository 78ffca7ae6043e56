// Finds ranks that take longer than the others for their own part of a step, always or in some
// steps, and whether the device, the input or the host is slow.
//
// Each is replayed as fast as the usual rank (replays.h), so a rank that only inherited its
// lateness saves nothing.
#include <fmt/core.h>

#include <limits>
#include <map>
#include <tuple>

#include "check/names.h"
#include "why/causes.h"
#include "why/numbers.h"
#include "why/replays.h"
#include "why/slow_links.h"
#include "why/slow_ranks.h"
#include "why/step_copies.h"

namespace tprof::why {
namespace {

using check::Findings;
using check::Kind;
using check::Ns;
using check::Percent;
using check::Processes;
using check::Say;

constexpr double kShownPercent = 0.1;  // one unit of the last printed digit

// A rank may compute more because others send it more, as to a popular expert.
void tell_exchanged(const Evidence& e, const Places& slow, check::Finding& f) {
  constexpr double kMore = 1.5;
  std::vector<double> others;
  double least = std::numeric_limits<double>::max();
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const auto bytes = static_cast<double>(e.times.facts[r].exchanged);
    if (std::ranges::binary_search(slow, r)) {
      least = std::min(least, bytes);
    } else {
      others.push_back(bytes);
    }
  }
  const double usual = median(std::move(others));
  if (usual == 0 || least < kMore * usual) return;
  f.evidence.push_back(
      {Say::exchanges_more,
       {{"one", slow.size() == 1}, {"times", fmt::format("{:.1f}", least / usual)}}});
}

// True if the saving is large enough to report, and larger than its doubt.
bool is_told(const Evidence& e, const Tried& tried) {
  const auto& [slow, saving] = tried;
  const bool few = slow.steps.size() == 2;  // too few to estimate a doubt
  const double least_share = slow.steps.empty() ? kLeastShare : kUsualShare;
  return saving.ns >= least_share * e.step_ns && (few || saving.ns > saving.doubt);
}

void tell(const Evidence& e, const Tried& tried, Findings& found) {
  const auto& [slow, saving] = tried;
  const Places steps = slow.steps.empty() ? every_step(e) : slow.steps;
  const Idle idle = slow.of == Of::host ? more_idle(e, slow.ranks, steps) : Idle();
  const Kind kind = slow.of == Of::kernels     ? Kind::slow_gpu
                    : slow.of == Of::copies    ? Kind::slow_copies
                    : slow.of == Of::transfers ? Kind::slow_link
                    : mostly_leads(idle)       ? Kind::slow_input
                                               : Kind::slow_cpu;
  const Processes who = processes_of(e, slow.ranks);
  Places mended = slow.mended;
  std::erase_if(mended, [&](std::size_t r) { return std::ranges::binary_search(slow.ranks, r); });
  const Processes slower = processes_of(e, mended);
  const std::string host = host_of(e, slow.ranks);
  const std::size_t period = period_of(e, slow.steps);
  const auto step = [&](std::size_t place) { return e.times.steps[e.steps[place]]; };
  const auto percent = [&](double ns) { return Percent{100 * ns / e.step_ns}; };
  const double least = std::max(0.0, saving.ns - saving.doubt);
  const double most = std::min(saving.ns + saving.doubt, e.step_ns);
  const bool sure = 100 * saving.doubt / e.step_ns < kShownPercent / 2;
  check::Finding& f =
      add(found, kind, who,
          {{"one", who.size() == 1},
           {"after", slower.empty() ? std::optional<check::Who>() : check::Who(slower)},
           {"saves", Ns{std::llround(saving.ns)}},
           {"share", percent(saving.ns)},
           {"least", sure ? std::nullopt : std::optional(percent(least))},
           {"most", sure ? std::nullopt : std::optional(percent(most))},
           {"in_steps", slow.steps.empty() ? std::optional<std::uint64_t>() : slow.steps.size()},
           {"of_steps", e.steps.size()},
           {"which",
            slow.steps.empty() ? std::optional<std::string>() : first_numbers_of(e, slow.steps)},
           {"period", period == 0 ? std::optional<std::string>() : ordinal(period)},
           {"stage", slow.stage},
           {"named", slow.stage || !host.empty()},
           {"host", host.empty() ? std::optional<std::string>() : host}});
  f.cost = cost_of(e, saving.ns, saving.doubt);
  if (slow.of == Of::kernels) tell_exchanged(e, slow.ranks, f);
  if (slow.of == Of::transfers) {
    tell_link(e, slow, f);
  } else if (!slow.steps.empty()) {
    tell_copies_of_steps(e, slow.ranks, slow.steps, f);
  } else {
    tell_copies_of_ranks(e, slow.ranks, slow.of == Of::kernels, f);
  }
  if (kind == Kind::slow_cpu) tell_place(idle, slow, f);
  if (slow.steps.empty()) return;
  f.steps = {step(slow.steps.front()), step(slow.steps.back())};
  f.in_steps = steps_of(e, slow.steps);
}

// Returns the smallest saving of these ranks that is reported.
double least_ns(const Evidence& e, const Slow& slow) {
  return (slow.alone ? kLeastIdle : kUsualShare) * e.step_ns;
}

// Returns the set if its hosts can't be compared with others of their stages, and those of its
// ranks that are idle longest.
std::vector<Slow> alone(const Evidence& e, Slow set) {
  const std::vector<Places>& stages = e.replays->stages();
  const auto apart = [&](const Places& stage) {
    const auto in = std::ranges::count_if(stage, [&](std::size_t r) { return set.has(r); });
    return in == 0 || in == std::ssize(stage);
  };
  if (stages.empty() || !std::ranges::all_of(stages, apart)) return {};
  const Places ranks = by_idle(e, set.ranks);
  set.alone = true;
  std::vector<Slow> all{set};
  for (std::size_t n = 1; n < std::min<std::size_t>(ranks.size(), 3); ++n) {
    all.push_back({.ranks = first_of(ranks, n), .of = Of::host, .alone = true});
  }
  return all;
}

// Returns who may be slow: a rank can't save more than what it needs beyond the usual rank.
std::vector<Slow> candidates(const Evidence& e, const std::vector<Slow>& sets) {
  std::vector<Slow> all;
  for (const Of of : {Of::kernels, Of::host, Of::copies}) {
    const auto more = [&](std::size_t r) { return e.replays->more_ns({r}, of); };
    Places slow = every_rank(e);
    std::erase_if(slow, [&](std::size_t r) { return more(r) < kUsualShare * e.step_ns; });
    // If most ranks seem slow, the rest just have less to do.
    if (slow.size() * 4 > e.times.ranks.size() * 3) continue;
    for (Slow set : sets) {
      set.of = of;
      if (of == Of::host) std::ranges::move(alone(e, set), std::back_inserter(all));
      if (e.replays->more_ns(set.ranks, of) >= least_ns(e, set)) all.push_back(std::move(set));
    }
    std::ranges::stable_sort(slow, std::ranges::greater(), more);
    Places first;  // it may take all of the slowest ranks to save anything
    for (const std::size_t r : slow) {
      if (first.size() == kMostRanks) break;
      all.push_back({.ranks = {r}, .of = of});
      first.insert(std::ranges::upper_bound(first, r), r);
      if (first.size() > 1) all.push_back({.ranks = first, .of = of});
    }
  }
  std::ranges::move(slow_links(e), std::back_inserter(all));
  return all;
}

// Returns the smallest set that saves nearly as much as the best one: its other ranks are just
// along with them. Null: none is worth reporting.
Tried* to_blame(const Evidence& e, std::vector<Tried>& tried) {
  std::erase_if(tried, [&](const Tried& t) { return !is_told(e, t); });
  const auto saved = [](const Tried& t) { return t.saving.ns; };
  auto best = std::ranges::max_element(tried, {}, saved);
  if (best == tried.end()) return nullptr;
  // If it contains a whole stage or host, that is reported first, then the rest.
  const auto is_part = [&](const Tried& t) {
    return t.slow.named && t.slow.of == best->slow.of && t.slow.steps == best->slow.steps &&
           std::ranges::includes(best->slow.ranks, t.slow.ranks);
  };
  const auto part = std::ranges::max_element(
      tried, {}, [&](const Tried& t) { return is_part(t) ? t.saving.ns : -1; });
  if (is_part(*part)) best = part;
  const double enough = best->saving.ns - kUsualShare * e.step_ns;
  std::erase_if(tried, [&](const Tried& t) { return t.saving.ns < enough; });
  return &*std::ranges::min_element(tried, {}, [](const Tried& t) {
    // A stage without others to compare with is blamed only if nobody else is. A host or stage has
    // a short name; other ranks are listed.
    const std::size_t n = t.slow.ranks.size();
    return std::tuple(t.slow.alone, t.slow.named ? std::min<std::size_t>(n, 2) : n, n,
                      !t.slow.named, -t.saving.ns);
  });
}

// Ranks and links that were reported, ascending.
struct Told {
  Places ranks{};
  Places links{};

  bool has(const Slow& slow) const {
    const Places& its = slow.of == Of::transfers ? links : ranks;
    return std::ranges::any_of(its, [&](std::size_t owner) { return slow.has(owner); });
  }
  void add(const Slow& slow) {
    Places& its = slow.of == Of::transfers ? links : ranks;
    its.insert(its.end(), slow.owners().begin(), slow.owners().end());
    std::ranges::sort(its);
    its.erase(std::unique(its.begin(), its.end()), its.end());
  }
};

// Tries who may be slow, and how much shorter a step would be otherwise. Ranks slow in some steps
// count only if they make up half of what even ranks would save: if ranks take turns, none of them
// is slow (uneven.cpp).
std::vector<Tried> try_all(const Evidence& e, const std::vector<Slow>& sets,
                           const std::vector<Slow>& at_times, const Told& told) {
  std::vector<Tried> tried;
  for (const Slow& slow : at_times) {
    if (told.has(slow)) continue;
    auto its = slow_at_times(e, slow);
    if (its) tried.push_back(std::move(*its));
  }
  const Tried* most = to_blame(e, tried);
  const bool turns = most != nullptr && most->slow.of != Of::transfers &&
                     2 * most->saving.ns < mean(e.replays->evened_out(true, every_rank(e)));
  tried = most == nullptr || turns ? std::vector<Tried>() : std::vector<Tried>{*most};
  std::vector<Slow> all = candidates(e, sets);
  // Hosts that are alone in what they do, with less than half of all hosts' time: it is the
  // program's.
  double half_ns = 0;
  if (std::ranges::any_of(all, &Slow::alone)) {
    const Slow hosts{.ranks = every_rank(e), .of = Of::host, .alone = true};
    half_ns = median(e.replays->saves_in_steps(hosts)) / 2;
  }
  for (Slow& slow : all) {
    const double least_alone = std::max(least_ns(e, slow), half_ns);
    if (slow.alone && median(e.replays->saves_in_steps(slow)) < least_alone) continue;
    slow.mended = told.ranks;
    const Saving saving = e.replays->saves(slow);
    tried.push_back({std::move(slow), saving});
  }
  return tried;
}

}  // namespace

std::string host_of(const Evidence& e, const Places& ranks) {
  const auto name = [&](std::size_t r) { return std::string(e.times.ranks[r]->header.host); };
  const std::string host = name(ranks[0]);
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    if ((name(r) == host) != std::ranges::binary_search(ranks, r)) return "";
  }
  return ranks.size() > 1 ? host : "";
}

std::vector<Slow> sets_of(const Evidence& e) {
  std::vector<Slow> sets;
  for (const Places& stage : e.replays->stages())
    sets.push_back({.ranks = stage, .named = true, .stage = true});
  std::map<std::string, Places> hosts;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    hosts[e.times.ranks[r]->header.host].push_back(r);
  }
  if (hosts.size() == 1) return sets;
  for (auto& [name, ranks] : hosts) sets.push_back({.ranks = std::move(ranks), .named = true});
  return sets;
}

// Reports the ranks that save most, corrects them, and continues with the others.
void slow_ranks(const Evidence& e, Findings& found) {
  if (e.replays == nullptr) return;
  const std::vector<Slow> sets = sets_of(e);
  const std::vector<Slow> at_times = candidates_at_times(e, sets);
  Told told;
  while (true) {
    std::vector<Tried> tried = try_all(e, sets, at_times, told);
    const Tried* most = to_blame(e, tried);
    if (most == nullptr) return;
    tell(e, *most, found);
    e.replays->mend(most->slow);
    told.add(most->slow);
  }
}

}  // namespace tprof::why
