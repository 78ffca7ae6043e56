// Finds where in a step devices stand idle that do so longer than the others': the place tells what
// to look at.
#include <map>

#include "why/numbers.h"
#include "why/slow_ranks.h"

namespace tprof::why {

using diagnose::Say;

namespace {

double sum_of(const Grid& all, const Places& ranks, const Places& steps) {
  double sum = 0;
  for (const std::size_t i : steps) {
    for (const std::size_t r : ranks) sum += all.at(r, i);
  }
  return sum;
}

// Returns where most of what they stand idle longer lies, in two thirds of these steps or more: in
// one gap, which is shorter on the others.
std::optional<Place> place_of(const Evidence& e, const Places& slow, const Places& steps,
                              const Grid& idle) {
  std::map<Place, std::size_t> places;
  for (const std::size_t i : steps) {
    std::vector<double> others;
    for (std::size_t r = 0; r < idle.ranks(); ++r) {
      if (!std::ranges::binary_search(slow, r)) others.push_back(e.times.of(r)[e.steps[i]].gap);
    }
    const double usual = median(std::move(others));
    for (const std::size_t r : slow) {
      const Cell& c = e.times.of(r)[e.steps[i]];
      if (c.gap > 0 && 2 * (c.gap - usual) > idle.at(r, i)) {
        ++places[e.times.facts[r].places[c.gap_place]];
      }
    }
  }
  const auto most = std::ranges::max_element(places, {}, [](const auto& of) { return of.second; });
  const bool tells = most != places.end() && 3 * most->second >= 2 * steps.size() * slow.size();
  return tells ? std::optional(most->first) : std::nullopt;
}

}  // namespace

// Between steps the host does other things than to launch kernels.
void tell_place(const Evidence& e, const SlowRanks& ranks, diagnose::Finding& f) {
  const Places steps = ranks.steps.empty() ? every_step(e) : ranks.steps;
  const Grid idle = beyond(part_of_own(e, Part::host), kUsual);
  const Grid at_end = beyond(part_of_own(e, Part::between), kUsual);
  const bool one = ranks.slow.size() == 1;
  if (sum_of(at_end, ranks.slow, steps) * 2 >= sum_of(idle, ranks.slow, steps)) {
    f.evidence.push_back({Say::idle_at_end, {{"one", one}, {"who", std::nullopt}}});
    return;
  }
  const std::optional<Place> place = place_of(e, ranks.slow, steps, idle);
  if (!place) return;
  const diagnose::Values when{{"once", ranks.steps.size() == 1},
                              {"at", std::nullopt},
                              {"some", ranks.steps.size() > 1},
                              {"all", ranks.steps.empty()}};
  if (place->loads) {
    f.evidence.push_back({Say::idle_before_copies, when});
    return;
  }
  const auto named = [](const text::Kept& call) {
    return call.empty() ? std::optional<std::string>() : call.str();
  };
  diagnose::Fact within{Say::idle_within, when};
  set(within, {"behind", named(place->behind)});
  set(within, {"before", named(place->before)});
  f.evidence.push_back(std::move(within));
  f.next = diagnose::Fact{Say::look_there, {{"ahead", place->behind.empty()}}};
}

}  // namespace tprof::why
