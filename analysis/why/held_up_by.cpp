// Finds the ranks that others wait for in steps that take far longer than usual. slow_at_times.cpp
// finds ranks that are slow in several similar steps.
#include <algorithm>
#include <functional>
#include <map>

#include "check/names.h"
#include "why/lengths.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Say;

}  // namespace

std::vector<HoldsUp> who_holds_up(const Evidence& e, const Lengths& all, const Places& steps) {
  std::vector<HoldsUp> who;
  if (e.replays == nullptr) return who;
  const auto longer = [&](std::size_t i) { return all.ns[i] - all.usual; };
  Places open = steps;  // no rank is found yet for these
  // Hosts hold up a step by what they need more than usually, or more than others in every step:
  // the latter shows only once their devices run out of work.
  const auto hosts_save = [&](const Places& ranks, const Places& here) {
    std::vector<double> saved = e.replays->saves_alone({ranks, Of::host, here});
    if (e.replays->more_ns(ranks, Of::host) <= 0) return saved;
    const std::vector<double> always = e.replays->saves_alone({ranks, Of::host});
    for (const std::size_t i : here) saved[i] = std::max(saved[i], always[i]);
    return saved;
  };
  const auto try_it = [&](const Places& ranks, const Places& here) {
    const std::vector<double> by_host = hosts_save(ranks, here);
    const std::vector<double> by_kernels = e.replays->saves_alone({ranks, Of::kernels, here});
    HoldsUp its{.ranks = ranks};
    for (const std::size_t i : here) {
      if (2 * (by_host[i] + by_kernels[i]) < longer(i)) continue;
      std::erase(open, i);
      its.steps.push_back(i);
      its.ns += longer(i);
      if (its.steps.size() == 1 || all.ns[i] > all.ns[its.longest]) {
        its.longest = i;
        its.by_host = by_host[i] > by_kernels[i];
      }
    }
    if (!its.steps.empty()) who.push_back(std::move(its));
  };
  std::vector<std::vector<double>> more;  // an upper bound of what each rank saves
  for (const std::size_t r : every_rank(e)) {
    more.push_back(e.replays->more_in_steps(r, Of::kernels, true));
    const std::vector<double> host = e.replays->more_in_steps(r, Of::host, true);
    const double always = e.replays->more_ns({r}, Of::host);
    for (std::size_t i = 0; i < host.size(); ++i) more.back()[i] += std::max(host[i], always);
  }
  std::map<std::size_t, Places> slow;  // by step
  std::map<std::size_t, Places> steps_of;
  for (const std::size_t i : steps) {
    Places here = every_rank(e);
    std::erase_if(here, [&](std::size_t r) { return 2 * more[r][i] < longer(i); });
    slow[i] = here;
    std::ranges::stable_sort(here, std::ranges::greater(),
                             [&](std::size_t r) { return more[r][i]; });
    here.resize(std::min(here.size(), kMostRanks));
    for (const std::size_t r : here) steps_of[r].push_back(i);
  }
  for (const auto& [rank, here] : steps_of) try_it({rank}, here);
  // If most ranks are slow, it is the program.
  std::map<Places, Places> together;
  for (const std::size_t i : open) {
    if (2 * slow[i].size() <= e.times.ranks.size()) together[slow[i]].push_back(i);
  }
  for (const auto& [ranks, here] : together) {
    if (ranks.size() > 1) try_it(ranks, here);
  }
  std::ranges::stable_sort(who, std::ranges::greater(), &HoldsUp::ns);
  return who;
}

check::Facts facts_of(const Evidence& e, const std::vector<HoldsUp>& who, std::size_t of_steps) {
  constexpr std::size_t kMost = 3;
  check::Facts facts;
  for (const HoldsUp& its : who) {
    if (facts.size() == kMost) break;
    const std::size_t n = its.steps.size();
    const bool all = n == of_steps;
    const auto which = all ? std::nullopt : std::optional(first_numbers_of(e, its.steps));
    facts.push_back(
        {Say::holds_up, {{"who", processes_of(e, its.ranks)}, {"steps", n}, {"which", which}}});
  }
  return facts;
}

void tell_where_it_holds_up(const Evidence& e, const HoldsUp& who, bool clear, check::Finding& f) {
  if (!who.by_host) return;
  const check::Processes ranks = processes_of(e, who.ranks);
  set(f.text, {"host_of", ranks});
  const std::size_t before = f.evidence.size();
  const Slow its{.ranks = who.ranks, .of = Of::host, .steps = {who.longest}};
  tell_place(more_idle(e, its.ranks, its.steps), its, f);
  if (clear || f.evidence.size() == before) return;
  set(f.evidence.back(), {"who", ranks});
  set(f.evidence.back(), {"once", false});
  set(f.evidence.back(), {"at", e.times.steps[e.steps[who.longest]]});
}

}  // namespace tprof::why
