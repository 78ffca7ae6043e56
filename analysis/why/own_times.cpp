#include "why/own_times.h"

#include <algorithm>

#include "why/numbers.h"

namespace tprof::why {
namespace {

template <typename F>
Grid filled(const Evidence& e, F&& of) {
  Grid all(e.times.ranks.size(), e.steps.size());
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    for (std::size_t i = 0; i < e.steps.size(); ++i) {
      all.at(r, i) = static_cast<float>(of(r, e.steps[i]));
    }
  }
  return all;
}

}  // namespace

std::vector<double> Grid::of_rank(std::size_t rank) const {
  const auto first = all_.begin() + static_cast<std::ptrdiff_t>(rank * steps_);
  return {first, first + static_cast<std::ptrdiff_t>(steps_)};
}

std::vector<double> Grid::of_step(std::size_t step) const {
  std::vector<double> all;
  for (std::size_t r = 0; r < ranks(); ++r) all.push_back(at(r, step));
  return all;
}

double Grid::longest(std::size_t step) const {
  float most = 0;
  for (std::size_t r = 0; r < ranks(); ++r) most = std::max(most, at(r, step));
  return most;
}

Grid own_times(const Evidence& e) {
  return filled(e, [&](std::size_t r, std::size_t s) { return e.times.own(r, s); });
}

Grid part_of_own(const Evidence& e, Part part) {
  return filled(e, [&](std::size_t r, std::size_t s) -> double {
    const Cell& c = e.times.of(r)[s];
    if (part == Part::between) return c.between;
    const double computed = e.times.computed(r, s);
    if (part == Part::compute) return computed;
    const double lead = c.lead - e.times.unpunished(r, s);
    if (part == Part::lead) return lead;
    // If it may have computed, but no rank computed for so long, its host came late. A slow
    // transfer is neither: slow_links.cpp.
    const double host = e.times.own(r, s) - computed - (c.exposed - e.times.held_up(r, s));
    return part == Part::host ? host : host - lead;
  });
}

Grid beyond(const Grid& of, double share) {
  Grid all = of;
  for (std::size_t i = 0; i < of.steps(); ++i) {
    const auto usual = static_cast<float>(quantile(of.of_step(i), share));
    for (std::size_t r = 0; r < of.ranks(); ++r) all.at(r, i) -= usual;
  }
  return all;
}

}  // namespace tprof::why
