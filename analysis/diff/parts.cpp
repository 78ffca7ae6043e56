// Compares where the time of a step goes.
#include <algorithm>
#include <numeric>
#include <optional>

#include "diff/usual.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;

// With more of the waiting that may be transfers, the two are one part.
constexpr double kMostUnmet = 0.1;

constexpr double kFarMore = 2;       // times as much as any other rank
constexpr double kByChance = 0.001;  // that a rank is told

template <typename F>
std::vector<double> means_over_ranks(const Usual& side, const F& part) {
  std::vector<double> all;
  for (const Step* step : side.steps) {
    double sum = 0;
    for (const Parts& p : step->parts) sum += part(p);
    all.push_back(sum / static_cast<double>(step->parts.size()));
  }
  return all;
}

template <typename F>
std::vector<double> of_rank(const Usual& side, std::size_t rank, const F& part) {
  std::vector<double> all;
  for (const Step* step : side.steps) all.push_back(part(step->parts[rank]));
  return all;
}

bool all_known(const Usual& side) {
  return std::ranges::all_of(side.steps, [](const Step* s) { return !s->parts.empty(); });
}

// By how much a part grew on each rank, at least and at most: nobody knows where kernels may have
// run. Nullopt: on none it is sure to have grown far more than on the others.
std::optional<OneRank> grown(const Usual& a, const Usual& b, Of of, float Parts::*part) {
  const auto least = [&](const Parts& p) { return p.*part; };
  const auto most = [&](const Parts& p) { return p.*part + p.unsure; };
  const std::size_t ranks = a.run.rank_numbers.size();
  std::vector<stats::Difference> at_least;
  std::vector<stats::Difference> at_most;
  double freedom = static_cast<double>(a.steps.size() + b.steps.size());
  const auto add = [&](const auto& of_a, const auto& of_b, std::size_t r, auto& to) {
    const std::vector<double> x = of_rank(a, r, of_a);
    const std::vector<double> y = of_rank(b, r, of_b);
    to.push_back(*stats::difference(x, y, all_of(x, y)));
    freedom = std::min(freedom, to.back().freedom);
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    add(most, least, r, at_least);
    add(least, most, r, at_most);
  }
  const double t = stats::student_t(kByChance / static_cast<double>(ranks), freedom);
  std::size_t first = 0;
  const auto surely = [&](std::size_t r) {
    return at_least[r].b - at_least[r].a - t * at_least[r].error;
  };
  for (std::size_t r = 1; r < ranks; ++r) {
    if (surely(r) > surely(first)) first = r;
  }
  const double step = std::accumulate(a.lengths.begin(), a.lengths.end(), 0.0) /
                      static_cast<double>(a.lengths.size());
  if (surely(first) < 2 * kLeastOfStep * step) return std::nullopt;
  for (std::size_t r = 0; r < ranks; ++r) {
    const double more = at_most[r].b - at_most[r].a + t * at_most[r].error;
    if (r != first && surely(first) < kFarMore * more) return std::nullopt;
  }
  return OneRank{of, a.run.rank_numbers[first], at_least[first].b - at_least[first].a};
}

}  // namespace

std::vector<PartChange> parts_of(const Usual& a, const Usual& b) {
  std::vector<PartChange> all;
  if (!all_known(a) || !all_known(b)) return all;
  const auto difference = [&](const auto& of_a, const auto& of_b) {
    const std::vector<double> x = means_over_ranks(a, of_a);
    const std::vector<double> y = means_over_ranks(b, of_b);
    return *stats::difference(x, y, all_of(x, y));
  };
  const auto compare = [&](Of of, const auto& part) {
    all.push_back({of, difference(part, part)});
  };
  // Nobody knows where kernels may have run: only what grew, or shrank, wherever they did.
  const auto compare_sure = [&](Of of, float Parts::*part) {
    const auto least = [&](const Parts& p) { return p.*part; };
    const auto most = [&](const Parts& p) { return p.*part + p.unsure; };
    const stats::Difference grew = difference(most, least);
    const stats::Difference shrank = difference(least, most);
    if (grew.b > grew.a) all.push_back({of, grew});
    if (shrank.b < shrank.a) all.push_back({of, shrank});
  };
  compare_sure(Of::compute, &Parts::compute);
  compare(Of::unsure, [](const Parts& p) { return p.unsure; });
  if (std::max(a.run.unmet_share, b.run.unmet_share) > kMostUnmet) {
    compare(Of::communication, [](const Parts& p) { return p.waiting + p.transfers; });
  } else {
    compare(Of::waiting, [](const Parts& p) { return p.waiting; });
    compare(Of::transfers, [](const Parts& p) { return p.transfers; });
  }
  compare_sure(Of::idle, &Parts::idle);
  return all;
}

std::vector<OneRank> grown_on_one_rank(const Usual& a, const Usual& b) {
  std::vector<OneRank> all;
  if (!all_known(a) || !all_known(b)) return all;
  if (a.run.rank_numbers.size() < 2 || a.run.rank_numbers != b.run.rank_numbers) return all;
  if (const auto one = grown(a, b, Of::compute, &Parts::compute)) all.push_back(*one);
  if (const auto one = grown(a, b, Of::idle, &Parts::idle)) all.push_back(*one);
  return all;
}

}  // namespace tprof::diff
