// Ranks that take longer than the others for their own part of a step, always or in some steps, and
// whether it is the device, the input or the host.
//
// While ranks wait for one, that one waits for nobody. So the slowest rank is the one with most
// time of its own (Times::own), and one that is late only because it waited elsewhere has no more
// than all. If a slow rank were like the slowest of the others, a step would be shorter by the
// difference.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/who.h"
#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Findings;
using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;
using diagnose::Processes;

// The ranks of real clusters differ by so much without anybody's fault.
constexpr double kUsualShare = 0.02;
constexpr double kTimesUsual = 6;         // of the spread among ranks, or among steps
constexpr double kSomeStepsShare = 0.03;  // of a step, where it is only some steps

constexpr std::size_t kMostAtTimes = 2;

struct Ranks {
  std::vector<std::size_t> slow;      // indices, ascending
  std::vector<std::size_t> steps{};   // in which they are; empty: in all
  std::vector<std::size_t> mended{};  // ranks that are slower, and told already
};

// The time of each rank in each step beyond the usual, by rank. The usual is what three quarters of
// the ranks take at least: those of one host of two may be slow, which are half of them.
using Beyond = std::vector<std::vector<double>>;
constexpr double kUsual = 0.25;

Beyond beyond_usual(const Evidence& e) {
  Beyond all(e.times.ranks.size());
  std::vector<double> at_step(all.size());
  for (const std::size_t s : e.steps) {
    for (std::size_t r = 0; r < all.size(); ++r) at_step[r] = e.times.own(r, s);
    const double usual = quantile(at_step, kUsual);
    for (std::size_t r = 0; r < all.size(); ++r) all[r].push_back(at_step[r] - usual);
  }
  return all;
}

Ranks always_slow(const Evidence& e, const Beyond& beyond) {
  std::vector<double> typical;
  for (const std::vector<double>& of_rank : beyond) typical.push_back(median(of_rank));
  // A quarter of a normal distribution is 0.67 of its width below the middle, and the least of 16
  // is 1.8.
  const double usual = quantile(typical, kUsual);
  const double among = (usual - quantile(typical, 0)) / 1.1;
  Ranks found;
  for (std::size_t r = 0; r < beyond.size(); ++r) {
    const double least = std::max(
        {kUsualShare * e.step_ns, kTimesUsual * among, kTimesUsual * median_error(beyond[r])});
    if (typical[r] - usual > least) found.slow.push_back(r);
  }
  return found;
}

// For each rank the steps in which it held the others up, where these are not nearly all.
std::vector<Ranks> slow_at_times(const Evidence& e, const Beyond& beyond) {
  std::vector<double> widths;
  for (const std::vector<double>& of_rank : beyond) {
    widths.push_back((quantile(of_rank, 0.84) - quantile(of_rank, 0.16)) / 2);
  }
  const double least = std::max(kSomeStepsShare * e.step_ns, kTimesUsual * median(widths));
  std::map<std::size_t, std::vector<std::size_t>> of_ranks;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    std::vector<std::size_t> slow;
    for (std::size_t r = 0; r < beyond.size(); ++r) {
      if (beyond[r][i] > least) slow.push_back(r);
    }
    // Where many are, it is no rank's own trouble: their work differs.
    if (slow.size() * 8 > beyond.size() && slow.size() > 1) continue;
    for (const std::size_t r : slow) of_ranks[r].push_back(e.steps[i]);
  }
  std::vector<Ranks> all;
  for (auto& [rank, steps] : of_ranks) {
    // Once is chance; long_steps tells it.
    if (steps.size() >= 2 && steps.size() * 3 <= e.steps.size() * 2)
      all.push_back({{rank}, std::move(steps)});
  }
  return all;
}

bool sends(const read::Process& rank) {
  const read::Rows& rows = read::rows_of(rank);
  return std::ranges::any_of(rows, [](const read::Row& row) { return row.bucket == Bucket::P2P; });
}

// Returns what a step would be shorter by if these ranks were like the slowest of the others.
struct Saving {
  double ns = 0;
  double doubt = 0;
};
Saving saving_of(const Evidence& e, const Ranks& ranks) {
  const std::vector<std::size_t>& steps = ranks.steps.empty() ? e.steps : ranks.steps;
  std::vector<double> each;
  for (const std::size_t s : steps) {
    double slowest = 0;
    double other = 0;
    for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
      if (std::ranges::binary_search(ranks.mended, r)) continue;
      const bool is_slow = std::ranges::binary_search(ranks.slow, r);
      double& most = is_slow ? slowest : other;
      most = std::max(most, e.times.own(r, s));
    }
    each.push_back(slowest - other);
  }
  const double part = static_cast<double>(steps.size()) / static_cast<double>(e.steps.size());
  Saving saving{std::max(0.0, mean(each)) * part, 2 * mean_error(each) * part};
  if (!sends(*e.times.ranks[ranks.slow[0]])) return saving;
  // The stages of a pipeline wait for each other anyway, at the ends of a step: from a quarter to
  // all of it is to be had, by where the stage stands and how its micro-batches follow each other
  // (tried).
  return {saving.ns * 5 / 8, saving.ns * 3 / 8 + saving.doubt};
}

// Tells where the time goes that these ranks take beyond the others. Nullopt: it is not theirs.
std::optional<Kind> kind_of(const Evidence& e, const Ranks& ranks) {
  const std::vector<std::size_t>& steps = ranks.steps.empty() ? e.steps : ranks.steps;
  double all = 0;
  double computing = 0;
  double leading = 0;
  double transferring = 0;
  for (const std::size_t s : steps) {
    const auto beyond = [&](auto part) {
      std::vector<double> theirs;
      std::vector<double> others;
      for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
        if (std::ranges::binary_search(ranks.mended, r)) continue;
        const bool is_slow = std::ranges::binary_search(ranks.slow, r);
        (is_slow ? theirs : others).push_back(part(r));
      }
      return mean(theirs) - median(others);
    };
    const auto cell = [&](std::size_t r) -> const Cell& { return e.times.of(r)[s]; };
    all += beyond([&](std::size_t r) { return e.times.own(r, s); });
    // Where it is not sure that the device computed, its host came late.
    computing += beyond([&](std::size_t r) { return static_cast<double>(cell(r).compute); });
    transferring +=
        beyond([&](std::size_t r) { return static_cast<double>(cell(r).exposed - cell(r).wait); });
    leading += beyond([&](std::size_t r) { return static_cast<double>(cell(r).lead); });
  }
  // Others wait for a slow transfer as for a rank that is late: slow_links.cpp.
  if (transferring * 2 > all) return std::nullopt;
  if (computing * 2 > all) return Kind::slow_gpu;
  return leading * 2 > all ? Kind::slow_input : Kind::slow_cpu;
}

// The host whose ranks these are, all of them and nobody else; empty if there is none, or but one.
std::string host_of(const Evidence& e, const Ranks& ranks) {
  const auto name = [&](std::size_t r) { return std::string(e.times.ranks[r]->header.host); };
  const std::string host = name(ranks.slow[0]);
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    if ((name(r) == host) != std::ranges::binary_search(ranks.slow, r)) return "";
  }
  return ranks.slow.size() > 1 ? host : "";
}

// Whether they are all ranks of one stage of a pipeline: those of a communicator.
bool is_stage(const Processes& who) {
  const read::Process& one = *who[0];
  return sends(one) && std::ranges::any_of(one.comms, [&](const auto& numbered) {
           const read::Comm& comm = numbered.second;
           const auto is_in = [&](const read::Process* p) {
             return std::ranges::any_of(p->comms,
                                        [&](const auto& n) { return n.second.id == comm.id; });
           };
           return comm.nranks == static_cast<std::int64_t>(who.size()) &&
                  std::ranges::all_of(who, is_in);
         });
}

void tell(const Evidence& e, const Ranks& ranks, Findings& found) {
  const Saving saving = saving_of(e, ranks);
  const bool few = ranks.steps.size() == 2;  // too few for a doubt
  if (saving.ns < kLeastShare * e.step_ns || (!few && saving.ns <= saving.doubt)) return;
  const std::optional<Kind> kind = kind_of(e, ranks);
  if (!kind) return;
  Processes who;
  for (const std::size_t r : ranks.slow) who.push_back(e.times.ranks[r]);
  Processes slower;
  for (const std::size_t r : ranks.mended) slower.push_back(e.times.ranks[r]);
  const std::string host = host_of(e, ranks);
  const std::size_t period = period_of(ranks.steps);
  diagnose::Finding& f =
      add(found, *kind, who,
          {{"one", who.size() == 1},
           {"after", slower.empty() ? std::optional<diagnose::Who>() : diagnose::who_of(slower)},
           {"share", Percent{100 * saving.ns / e.step_ns}},
           {"saves", Ns{std::llround(saving.ns)}},
           {"least", Percent{100 * std::max(0.0, saving.ns - saving.doubt) / e.step_ns}},
           {"most", Percent{100 * (saving.ns + saving.doubt) / e.step_ns}},
           {"in_steps", ranks.steps.empty() ? std::optional<std::uint64_t>() : ranks.steps.size()},
           {"of_steps", e.steps.size()},
           {"period", period == 0 ? std::optional<std::string>() : ordinal(period)},
           {"stage", is_stage(who)},
           {"host", host.empty() ? std::optional<std::string>() : host}});
  f.cost = cost_of(e, saving.ns, saving.doubt);
  if (!ranks.steps.empty()) {
    f.steps = {e.times.steps[ranks.steps.front()], e.times.steps[ranks.steps.back()]};
  }
}

// The slowest kind first; the others are worth what they delay once that is mended.
void tell_by_kind(const Evidence& e, const Ranks& always, Findings& found) {
  // Looking at one takes a look at all others; so many are slow for one reason.
  constexpr std::size_t kMostApart = 32;
  if (always.slow.size() > kMostApart) return tell(e, always, found);
  struct Group {
    Ranks ranks;
    double most = 0;
  };
  std::map<Kind, Group> kinds;
  for (const std::size_t r : always.slow) {
    Ranks others{{r}, {}, always.slow};
    std::erase(others.mended, r);
    const std::optional<Kind> kind = kind_of(e, others);
    if (!kind) continue;
    Group& group = kinds[*kind];
    group.ranks.slow.push_back(r);
    std::vector<double> own;
    for (const std::size_t s : e.steps) own.push_back(e.times.own(r, s));
    group.most = std::max(group.most, mean(own));
  }
  std::vector<Group> groups;
  for (auto& [kind, group] : kinds) groups.push_back(std::move(group));
  std::ranges::sort(groups, std::ranges::greater(), &Group::most);
  std::vector<std::size_t> told;
  for (Group& group : groups) {
    group.ranks.mended = told;
    tell(e, group.ranks, found);
    told.insert(told.end(), group.ranks.slow.begin(), group.ranks.slow.end());
    std::ranges::sort(told);
  }
}

}  // namespace

void slow_ranks(const Evidence& e, Findings& found) {
  if (e.times.ranks.size() < 2) return;
  const Beyond beyond = beyond_usual(e);
  const Ranks always = always_slow(e, beyond);
  // Most ranks can't be slower than the rest: then these have less to do.
  if (!always.slow.empty() && always.slow.size() * 4 <= e.times.ranks.size() * 3) {
    tell_by_kind(e, always, found);
  }
  std::vector<Ranks> at_times = slow_at_times(e, beyond);
  std::erase_if(at_times,
                [&](const Ranks& r) { return std::ranges::binary_search(always.slow, r.slow[0]); });
  // Where ranks take turns, none of them is to blame (uneven.cpp).
  if (at_times.size() > kMostAtTimes) return;
  for (const Ranks& r : at_times) tell(e, r, found);
}

}  // namespace tprof::why
