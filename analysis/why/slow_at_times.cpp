// Finds ranks that hold up the others in some steps.
#include <algorithm>
#include <set>
#include <utility>

#include "why/lengths.h"
#include "why/numbers.h"
#include "why/replays.h"
#include "why/slow_links.h"

namespace tprof::why {
namespace {

// Leaves out steps in which a rank held up the others by far less than in those that make up most
// of the sum: that is the usual variation. If only one step would be left, it is an outlier: it is
// dropped, and the others are looked at again.
void leave_out_far_less(const std::vector<double>& saved, Places& steps) {
  constexpr double kLesser = 1.0 / 3;
  while (steps.size() > 1) {
    double sum = 0;
    double squares = 0;
    for (const std::size_t i : steps) {
      const double ns = saved[i];
      sum += ns;
      squares += ns * ns;
    }
    const auto lesser = [&](std::size_t i) { return saved[i] < kLesser * squares / sum; };
    const auto others = std::stable_partition(steps.begin(), steps.end(), lesser);
    if (steps.end() - others > 1) {
      steps.erase(steps.begin(), others);
      return;
    }
    steps.erase(others, steps.end());
  }
}

// Returns first, first + n, ... if all of them are among the steps; else nothing.
Places every_nth(const Places& steps, std::size_t first, std::size_t n, std::size_t all) {
  Places some;
  for (std::size_t i = first; i < all; i += n) {
    if (!std::ranges::binary_search(steps, i)) return {};
    some.push_back(i);
  }
  return some;
}

// A host that does more in every nth step may also be a little late in others. Keeps only the
// every-nth steps if they make up two thirds of the sum and are twice as bad as the rest.
void keep_every_nth(const Evidence& e, const std::vector<double>& saved, Places& steps) {
  constexpr std::size_t kLongest = 1000;
  if (period_of(e, steps) != 0) return;
  const auto sum = [&](const Places& of) {
    double ns = 0;
    for (const std::size_t i : of) ns += saved[i];
    return ns;
  };
  const double all = sum(steps);
  for (std::size_t n = 2; n <= std::min(saved.size() / kFewestOfPeriod, kLongest); ++n) {
    for (const std::size_t first : steps) {
      if (first >= n) break;
      Places some = every_nth(steps, first, n, saved.size());
      if (some.size() < kFewestOfPeriod || period_of(e, some) == 0) continue;
      const double of_some = sum(some);
      const double more = of_some / static_cast<double>(some.size());
      const double less = (all - of_some) / static_cast<double>(steps.size() - some.size());
      if (3 * of_some < 2 * all || more < 2 * less) continue;
      steps = std::move(some);
      return;
    }
  }
}

void leave_out_lesser(const Evidence& e, const std::vector<double>& saved, Places& steps) {
  leave_out_far_less(saved, steps);
  keep_every_nth(e, saved, steps);
}

// By rank: what it needs more than usually, indexed as Evidence::steps.
using MoreOfRanks = std::vector<std::vector<double>>;

// Returns a rank together with those that need at least half as much more in the rank's worst
// steps.
Places beside(const Evidence& e, const MoreOfRanks& more, std::size_t rank) {
  Places steps = every_step(e);
  std::erase_if(steps, [&](std::size_t i) { return more[rank][i] <= 0; });
  leave_out_lesser(e, more[rank], steps);
  const auto in_steps = [&](std::size_t r) {
    double sum = 0;
    for (const std::size_t i : steps) sum += more[r][i];
    return sum;
  };
  const double least = in_steps(rank) / 2;
  Places all = every_rank(e);
  std::erase_if(all, [&](std::size_t r) { return in_steps(r) < least; });
  return all;
}

// Returns the ranks that may be slow in some steps, and in which: where they need more than
// usually. That is an upper bound of what they can save.
std::vector<Slow> ranks_at_times(const Evidence& e, const std::vector<Slow>& sets) {
  const double least_ns = kSomeStepsShare * e.step_ns;
  std::vector<Slow> all;
  for (const Of of : {Of::kernels, Of::host}) {
    // At first programs compile and fill caches, which makes hosts slow, not kernels.
    const std::size_t first = of == Of::host ? lengths_of(e).warming_up() : 0;
    MoreOfRanks more;
    MoreOfRanks own;  // not compared with others
    for (const std::size_t r : every_rank(e)) {
      more.push_back(e.replays->more_in_steps(r, of, true));
      own.push_back(e.replays->more_in_steps(r, of, false));
    }
    const auto needs = [&](std::size_t r) {
      double ns = 0;
      for (const double here : more[r]) ns += here < least_ns ? 0 : here;
      return ns;
    };
    Places most = every_rank(e);
    std::erase_if(most, [&](std::size_t r) { return needs(r) == 0; });
    std::ranges::stable_sort(most, std::ranges::greater(), needs);
    most.resize(std::min(most.size(), kMostRanks));
    std::set<Places> who;
    for (const std::size_t r : most) {
      who.insert({r});
      Places with = beside(e, own, r);
      // If most ranks are slow, it is the program.
      const bool named = std::ranges::count(sets, with, &Slow::ranks) != 0;
      if (named || 2 * with.size() < more.size()) who.insert(std::move(with));
    }
    for (const Places& ranks : who) {
      const auto set = std::ranges::find(sets, ranks, &Slow::ranks);
      Slow slow = set == sets.end() ? Slow{.ranks = ranks} : *set;
      slow.of = of;
      slow.steps = every_step(e);
      std::erase_if(slow.steps, [&](std::size_t i) {
        std::vector<double> here;
        for (const std::size_t r : ranks) here.push_back(more[r][i]);
        return i < first || median(std::move(here)) < least_ns;
      });
      if (!slow.steps.empty()) all.push_back(std::move(slow));
    }
  }
  return all;
}

}  // namespace

std::vector<Slow> candidates_at_times(const Evidence& e, const std::vector<Slow>& sets) {
  std::vector<Slow> all = ranks_at_times(e, sets);
  std::ranges::move(links_slow_at_times(e), std::back_inserter(all));
  return all;
}

std::optional<Tried> slow_at_times(const Evidence& e, Slow slow) {
  const std::vector<double> saved = e.replays->saves_in_steps(slow);
  std::erase_if(slow.steps, [&](std::size_t i) { return saved[i] <= 0; });
  leave_out_lesser(e, saved, slow.steps);
  if (slow.steps.size() < 2) return std::nullopt;
  const auto ns = [&](const std::vector<double>& saves) {
    double sum = 0;
    for (const std::size_t i : slow.steps) sum += saves[i] / static_cast<double>(e.steps.size());
    return sum;
  };
  const double saved_ns = ns(saved);
  if (slow.ranks.size() > 1 && slow.of != Of::transfers) {
    Slow all = slow;
    all.ranks = every_rank(e);
    const double more_ns = ns(e.replays->saves_in_steps(all)) - saved_ns;
    if (more_ns > kUsualShare * e.step_ns) return std::nullopt;  // the others are slow there too
  }
  const Saving saving = e.replays->saves(slow);
  return Tried{std::move(slow), saving};
}

}  // namespace tprof::why
