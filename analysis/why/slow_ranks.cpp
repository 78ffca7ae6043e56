// Ranks that take longer than the others for their own part of a step, always or in some steps, and
// whether it is the device, the input or the host.
//
// While ranks wait for one, that one waits for nobody. So the slowest rank is the one with most
// time of its own (Times::own), and one that is late only because it waited elsewhere has no more
// than all. Each part of that time is looked at by itself: batches of unlike length don't hide that
// a rank's input always comes late. If a slow rank had as much of that part as the others, a step
// would take as long as the longest own time then.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "diagnose/agreement.h"
#include "diagnose/who.h"
#include "why/causes.h"
#include "why/numbers.h"
#include "why/replays.h"
#include "why/slow_ranks.h"
#include "why/step_copies.h"

namespace tprof::why {
namespace {

using diagnose::Findings;
using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;
using diagnose::Processes;
using diagnose::Say;

constexpr double kShownPercent = 0.1;  // the last digit that is printed

// The ranks of real clusters differ by so much without anybody's fault.
constexpr double kUsualShare = 0.02;

constexpr double kByChance = 0.01;  // that any rank has more in as many steps as one that is told

constexpr std::size_t kMostAtTimes = 2;

constexpr Kind kind_of(Part part) {
  return part == Part::compute ? Kind::slow_gpu
         : part == Part::lead  ? Kind::slow_input
                               : Kind::slow_cpu;
}

Places always_slow(const Evidence& e, const OfPart& part) {
  // A quarter of a normal distribution is 0.67 of its width below the middle, and the least of 16
  // is 1.8.
  const double usual = quantile(part.typical, kUsual);
  const double among = (usual - quantile(part.typical, 0)) / 1.1;
  Places slow;
  for (std::size_t r = 0; r < part.typical.size(); ++r) {
    const double more = part.typical[r] - usual;
    const bool no_chance = more > kTimesUsual * part.error[r] ||
                           part.chance[r] * static_cast<double>(part.typical.size()) < kByChance;
    if (more > std::max(kUsualShare * e.step_ns, kTimesUsual * among) && no_chance) {
      slow.push_back(r);
    }
  }
  // Most ranks can't be slower than the rest: then these have less to do.
  if (slow.size() * 4 > part.typical.size() * 3) slow.clear();
  return slow;
}

// Ranks whose host takes longer in each step, but is seen to before the first kernel in some steps
// and behind it in others.
Places slow_now_and_then_in_both(const Evidence& e, const Parts& parts) {
  constexpr double kClear = 0.75;
  const auto mean = [&](Part part, std::size_t r) { return of(parts, part).mean[r]; };
  Places mixed = always_slow(e, of(parts, Part::host));
  std::erase_if(mixed, [&](std::size_t r) {
    return std::max(mean(Part::lead, r), mean(Part::rest, r)) > kClear * mean(Part::host, r);
  });
  return mixed;
}

// The host whose ranks these are, all of them and nobody else; empty if there is none, or but one.
std::string host_of(const Evidence& e, const SlowRanks& ranks) {
  const auto name = [&](std::size_t r) { return std::string(e.times.ranks[r]->header.host); };
  const std::string host = name(ranks.slow[0]);
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    if ((name(r) == host) != std::ranges::binary_search(ranks.slow, r)) return "";
  }
  return ranks.slow.size() > 1 ? host : "";
}

// The ranks of each stage of a pipeline: of a communicator on which nobody sends to one other rank,
// though they do on another one.
std::vector<Places> stages(const Evidence& e) {
  std::vector<Places> all;
  std::map<const read::Process*, std::size_t> places;
  bool some_send = false;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    places[e.times.ranks[r]] = r;
    some_send = some_send || sends(e, r);
  }
  if (!some_send) return all;
  for (const diagnose::Communicator& c : diagnose::communicators(e.job)) {
    if (c.members.size() < 2 || c.members.size() >= e.times.ranks.size()) continue;
    const diagnose::Member& one = c.members.front();
    const read::Rows& rows = read::rows_of(*one.process);
    const bool sends_here = std::ranges::any_of(rows, [&](const read::Row& row) {
      return row.bucket == Bucket::P2P && row.comm == one.comm->comm;
    });
    if (sends_here) continue;
    std::set<std::size_t> stage;
    for (const diagnose::Member& m : c.members) {
      if (const auto place = places.find(m.process); place != places.end()) {
        stage.insert(place->second);
      }
    }
    if (!stage.empty() && sends(e, *stage.begin())) all.emplace_back(stage.begin(), stage.end());
  }
  return all;
}

// More to compute may come from others: an expert to whom most tokens go.
void tell_exchanged(const Evidence& e, const Places& slow, diagnose::Finding& f) {
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

// Returns false if that is nobody's concern.
bool tell(const Evidence& e, const SlowRanks& ranks, const Saving& saving, Findings& found) {
  const bool few = ranks.steps.size() == 2;  // too few for a doubt
  const double least_share = ranks.steps.empty() ? kLeastShare : kUsualShare;
  if (saving.ns < least_share * e.step_ns || (!few && saving.ns <= saving.doubt)) {
    return false;
  }
  Processes who;
  for (const std::size_t r : ranks.slow) who.push_back(e.times.ranks[r]);
  Processes slower;
  for (const std::size_t r : ranks.mended) {
    if (!std::ranges::binary_search(ranks.slow, r)) slower.push_back(e.times.ranks[r]);
  }
  const std::string host = host_of(e, ranks);
  const std::size_t period = period_of(e, ranks.steps);
  const auto step = [&](std::size_t place) { return e.times.steps[e.steps[place]]; };
  const auto percent = [&](double ns) { return Percent{100 * ns / e.step_ns}; };
  const double least = std::max(0.0, saving.ns - saving.doubt);
  const double most = std::min(saving.ns + saving.doubt, e.step_ns);
  const bool sure = 100 * saving.doubt / e.step_ns < kShownPercent / 2;
  diagnose::Finding& f =
      add(found, kind_of(ranks.part), who,
          {{"one", who.size() == 1},
           {"after", slower.empty() ? std::optional<diagnose::Who>() : diagnose::who_of(slower)},
           {"saves", Ns{std::llround(saving.ns)}},
           {"share", percent(saving.ns)},
           {"least", sure ? std::nullopt : std::optional(percent(least))},
           {"most", sure ? std::nullopt : std::optional(percent(most))},
           {"in_steps", ranks.steps.empty() ? std::optional<std::uint64_t>() : ranks.steps.size()},
           {"of_steps", e.steps.size()},
           {"which",
            ranks.steps.empty() ? std::optional<std::string>() : first_numbers_of(e, ranks.steps)},
           {"period", period == 0 ? std::optional<std::string>() : ordinal(period)},
           {"stage", ranks.stage},
           {"host", host.empty() ? std::optional<std::string>() : host}});
  f.cost = cost_of(e, saving.ns, saving.doubt);
  if (ranks.part == Part::compute) tell_exchanged(e, ranks.slow, f);
  if (!ranks.steps.empty()) {
    tell_copies_of_steps(e, ranks.slow, ranks.steps, f);
  } else {
    tell_copies_of_ranks(e, ranks.slow, ranks.part, f);
  }
  if (kind_of(ranks.part) == Kind::slow_cpu) tell_place(e, ranks, f);
  if (ranks.steps.empty()) return true;
  f.steps = {step(ranks.steps.front()), step(ranks.steps.back())};
  f.in_steps = steps_of(e, ranks.steps);
  return true;
}

// Ranks that are slow in the same part are one group. But whole stages of a pipeline are one of
// their own: stages may have more to do than others, or less.
std::vector<SlowRanks> groups_of(const std::vector<Places>& stages, Places slow, Part part) {
  std::vector<SlowRanks> groups;
  std::set<std::size_t> whole;
  bool one = false;
  for (const Places& stage : stages) {
    if (!std::ranges::includes(slow, stage)) continue;
    one = whole.empty();
    whole.insert(stage.begin(), stage.end());
  }
  std::erase_if(slow, [&](std::size_t r) { return whole.contains(r); });
  if (!whole.empty()) {
    groups.push_back({.slow = {whole.begin(), whole.end()}, .part = part, .stage = one});
  }
  if (!slow.empty()) groups.push_back({.slow = std::move(slow), .part = part});
  return groups;
}

// Beside devices that have more to compute, another one stands idle longer though its host is as
// quick. Then it is the host's only if that needs more of a step, too.
void leave_out_idle_beside_slow_devices(const Evidence& e, const Places& slow_devices,
                                        std::vector<SlowRanks>& groups) {
  const auto needed = [&](std::size_t r) {
    std::vector<double> steps;
    for (const std::size_t i : e.steps) {
      const Cell& c = e.times.of(r)[i];
      steps.push_back(c.length - c.spare);
    }
    return median(std::move(steps));
  };
  std::erase_if(groups, [&](SlowRanks& g) {
    if (g.part == Part::compute) return false;
    double most = 0;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
      if (std::ranges::binary_search(g.slow, r)) continue;
      if (!std::ranges::binary_search(slow_devices, r)) return false;  // it tells what is usual
      most = std::max(most, needed(r));
    }
    std::erase_if(g.slow,
                  [&](std::size_t r) { return needed(r) - most < kUsualShare * e.step_ns; });
    return g.slow.empty();
  });
}

// A rank that is late also has to call what others called while they waited for it: a small part
// beside a large one is no cause of its own.
void leave_out_minor(const Parts& parts, std::vector<SlowRanks>& groups) {
  std::map<std::size_t, double> most;
  for (const SlowRanks& g : groups) {
    const OfPart& part = of(parts, g.part);
    for (const std::size_t r : g.slow) most[r] = std::max(most[r], part.typical[r]);
  }
  for (SlowRanks& g : groups) {
    const OfPart& part = of(parts, g.part);
    std::erase_if(g.slow, [&](std::size_t r) { return part.typical[r] < most[r] / 4; });
  }
  std::erase_if(groups, [](const SlowRanks& g) { return g.slow.empty(); });
}

void add_to(Places& told, const Places& ranks) {
  told.insert(told.end(), ranks.begin(), ranks.end());
  std::ranges::sort(told);
  told.erase(std::unique(told.begin(), told.end()), told.end());
}

// Who saves most first; the others are worth what they save once these are mended. Adds those that
// are told to `told`.
void tell_always_slow(const Evidence& e, std::vector<SlowRanks> groups, Places& told,
                      Replays& replays, Findings& found) {
  while (!groups.empty()) {
    std::vector<Saving> saves;
    for (const SlowRanks& group : groups) saves.push_back(replays.saves(group));
    const auto most = std::ranges::max_element(saves, {}, &Saving::ns);
    const auto its = groups.begin() + (most - saves.begin());
    its->mended = told;
    if (tell(e, *its, *most, found)) {
      replays.mend(*its);
      add_to(told, its->slow);
    }
    groups.erase(its);
  }
}

// Tells the devices that the graph of a pipeline names, and returns them.
Places tell_slow_devices(const Evidence& e, const Places& slow,
                         const std::vector<Places>& all_stages, Replays& replays, Findings& found) {
  std::vector<SlowRanks> sets;
  for (const Places& stage : all_stages) sets.push_back({.slow = stage, .stage = true});
  std::map<std::string, Places> hosts;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    hosts[e.times.ranks[r]->header.host].push_back(r);
  }
  for (auto& [name, ranks] : hosts) sets.push_back({.slow = std::move(ranks)});
  std::erase_if(sets, [&](const SlowRanks& s) { return !std::ranges::includes(slow, s.slow); });
  Places told;
  for (auto& [ranks, saving] : replays.slow_devices(slow, sets, kUsualShare * e.step_ns)) {
    ranks.mended = told;
    tell(e, ranks, saving, found);
    add_to(told, ranks.slow);
  }
  return told;
}

}  // namespace

void slow_ranks(const Evidence& e, Findings& found) {
  if (e.times.ranks.size() < 2 || e.model == nullptr) return;
  const Grid own = own_times(e);
  Parts parts;
  for (const Part part : kPartsToTell)
    parts.emplace_back(part_of_own(e, part), kUsualShare * e.step_ns);
  const std::vector<Places> all_stages = stages(e);
  Replays replays(e, all_stages);
  const Places slow_devices =
      tell_slow_devices(e, always_slow(e, of(parts, Part::compute)), all_stages, replays, found);
  const Places mixed = slow_now_and_then_in_both(e, parts);
  std::vector<SlowRanks> groups;
  for (const Part part : {Part::lead, Part::rest}) {
    Places slow = always_slow(e, of(parts, part));
    std::erase_if(slow, [&](std::size_t r) { return std::ranges::binary_search(mixed, r); });
    std::ranges::move(groups_of(all_stages, std::move(slow), part), std::back_inserter(groups));
  }
  std::ranges::move(groups_of(all_stages, mixed, Part::host), std::back_inserter(groups));
  leave_out_minor(parts, groups);
  leave_out_idle_beside_slow_devices(e, slow_devices, groups);
  Places told = slow_devices;
  tell_always_slow(e, std::move(groups), told, replays, found);
  std::vector<SlowRanks> at_times = slow_at_times(e, own);
  std::erase_if(at_times,
                [&](const SlowRanks& r) { return std::ranges::binary_search(told, r.slow[0]); });
  // Where ranks take turns, none of them is to blame (uneven.cpp).
  if (at_times.size() > kMostAtTimes) return;
  for (SlowRanks& r : at_times) {
    const auto part = part_of(r, own, parts);
    if (!part) continue;
    r.part = *part;
    tell(e, r, replays.saves(r), found);
    replays.mend(r);
  }
}

}  // namespace tprof::why
