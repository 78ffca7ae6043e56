// Tells for which ranks the others wait in steps that take far longer than the usual one. Ranks
// that are slow in several steps alike slow_at_times.cpp finds.
#include "diagnose/who.h"
#include "why/lengths.h"
#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

using diagnose::Say;

// The rank that has most of a step, and how much more than the next one.
struct First {
  std::size_t rank = 0;
  double more = 0;
};
template <typename F>
First first_of(std::size_t ranks, F&& of) {
  First first;
  double most = of(0);
  double next = of(1);
  if (next > most) first.rank = 1, std::swap(most, next);
  for (std::size_t r = 2; r < ranks; ++r) {
    const double ns = of(r);
    next = std::max(next, std::min(ns, most));
    if (ns > most) first.rank = r, most = ns;
  }
  first.more = most - next;
  return first;
}

}  // namespace

std::vector<HoldsUp> who_holds_up(const Evidence& e, const Lengths& all, const Places& steps) {
  std::vector<HoldsUp> who;
  if (!e.times.known() || e.times.ranks.size() < 2) return who;
  const Grid own = own_times(e);
  std::vector<double> usual;
  for (std::size_t r = 0; r < own.ranks(); ++r) usual.push_back(median(own.of_rank(r)));
  for (const std::size_t i : steps) {
    const First slowest = first_of(own.ranks(), [&](std::size_t r) { return own.at(r, i); });
    // One that is always the slowest is not why a step takes longer in which all do.
    const First later =
        first_of(own.ranks(), [&](std::size_t r) { return own.at(r, i) - usual[r]; });
    const double longer = all.ns[i] - all.usual;
    if (later.rank != slowest.rank || 2 * std::min(slowest.more, later.more) < longer) continue;
    auto its = std::ranges::find(who, slowest.rank, &HoldsUp::rank);
    if (its == who.end()) its = who.insert(its, {.rank = slowest.rank, .longest = i});
    its->steps.push_back(i);
    its->ns += longer;
    if (all.ns[i] > all.ns[its->longest]) its->longest = i;
  }
  std::ranges::stable_sort(who, std::ranges::greater(), &HoldsUp::ns);
  return who;
}

diagnose::Facts facts_of(const Evidence& e, const std::vector<HoldsUp>& who, std::size_t of_steps) {
  constexpr std::size_t kMost = 3;
  diagnose::Facts facts;
  for (const HoldsUp& its : who) {
    if (facts.size() == kMost) break;
    const std::size_t n = its.steps.size();
    const bool all = n == of_steps;
    const auto which = all ? std::nullopt : numbers_if_few(e, its.steps);
    facts.push_back({Say::holds_up,
                     {{"who", diagnose::Processes{e.times.ranks[its.rank]}},
                      {"steps", n},
                      {"which", which},
                      {"n", all || which ? std::nullopt : std::optional(n)}}});
  }
  return facts;
}

void tell_where_it_holds_up(const Evidence& e, const HoldsUp& who, bool clear,
                            diagnose::Finding& f) {
  const Grid host = part_of_own(e, Part::host);
  const std::size_t step = who.longest;
  const auto idle = first_of(host.ranks(), [&](std::size_t r) { return host.at(r, step); });
  const auto own =
      first_of(host.ranks(), [&](std::size_t r) { return e.times.own(r, e.steps[step]); });
  if (idle.rank != who.rank || 2 * idle.more < own.more) return;
  const diagnose::Processes rank{e.times.ranks[who.rank]};
  set(f.text, {"host_of", rank});
  const std::size_t before = f.evidence.size();
  tell_place(e, {.slow = {who.rank}, .part = Part::host, .steps = {step}}, f);
  if (clear || f.evidence.size() == before) return;
  set(f.evidence.back(), {"who", rank});
  set(f.evidence.back(), {"once", false});
  set(f.evidence.back(), {"at", e.times.steps[e.steps[step]]});
}

}  // namespace tprof::why
