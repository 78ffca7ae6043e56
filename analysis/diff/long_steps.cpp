// Tells of the steps that stand out in one of two runs, or in both.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "diff/usual.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;

// A pause that is so many times as long as all that the other run has is not the same thing on
// another day: checkpoints of one program took 0.7 s and 1.7 s.
constexpr double kFarLonger = 4;
constexpr double kLeastPause = 100e6;  // ns: the scheduler of a busy host takes less

// Returns how much more than usual each step takes, if it stands out.
std::vector<double> extra_of(const Usual& side, const std::vector<bool>& far, double usual) {
  std::vector<double> all;
  for (std::size_t i = 0; i < far.size(); ++i) all.push_back(far[i] ? side.lengths[i] - usual : 0);
  return all;
}

// The steps that are far longer than any of the other run. If they add too little, none.
std::vector<std::size_t> pauses(const Usual& side, const std::vector<double>& extra, double usual,
                                double longest_of_other) {
  std::vector<std::size_t> all;
  double ns = 0;
  for (std::size_t i = 0; i < extra.size(); ++i) {
    const bool pause = extra[i] != 0 &&
                       side.lengths[i] > kFarLonger * std::max(longest_of_other, usual) &&
                       side.lengths[i] > longest_of_other + kLeastPause;
    if (!pause) continue;
    all.push_back(i);
    ns += extra[i];
  }
  if (ns < kLeastOfStep * usual * static_cast<double>(extra.size())) all.clear();
  return all;
}

void put_long(const Usual& side, const std::vector<double>& extra,
              const std::vector<std::size_t>& far, const char* name, Diff& to, Lengths& lengths) {
  for (const double ns : extra) {
    lengths.out_ns += ns;
    lengths.out += ns != 0;
  }
  for (const std::size_t i : far) {
    lengths.far.push_back(side.run.steps[i].number);
    lengths.far_ns += extra[i];
  }
  if (lengths.out == 0) return;
  to.notes.push_back(fmt::format(
      "{} of {} steps of {} {} out from the usual ones by more than these vary, {:.1f} ms longer "
      "on average, the longest {:.1f} ms: left out of the times of the usual step",
      lengths.out, lengths.steps, name, lengths.out == 1 ? "stands" : "stand",
      lengths.out_ns / static_cast<double>(lengths.out) / 1e6, std::ranges::max(extra) / 1e6));
}

}  // namespace

stats::FarAbove one_pause(const Usual& a, const Usual& b) {
  stats::FarAbove found = all_of(a.lengths, b.lengths);
  const bool in_b = std::ranges::max(b.lengths) > std::ranges::max(a.lengths);
  const std::vector<double>& side = in_b ? b.lengths : a.lengths;
  const std::vector<double>& other = in_b ? a.lengths : b.lengths;
  const auto longest = std::ranges::max_element(side);
  double next = std::ranges::max(other);
  double more = 0;  // of the run
  for (auto ns = side.begin(); ns != side.end(); ++ns) {
    if (ns != longest) next = std::max(next, *ns);
    more += *ns;
  }
  more -= std::accumulate(other.begin(), other.end(), 0.0) * static_cast<double>(side.size()) /
          static_cast<double>(other.size());
  if (*longest > std::max(kFarLonger * next, next + kLeastPause) && more > *longest / 2) {
    (in_b ? found.b : found.a)[static_cast<std::size_t>(longest - side.begin())] = true;
  }
  return found;
}

// A few pauses are no sample of which Student's t knows more than that they are few. So what they
// add is a change, too, if it is more than two of the longest pauses would, of which one may be
// chance in each run, and than what usual steps may differ by. Those that are far longer than any
// of the other run are no chance.
void compare_long_steps(const Usual& a, const Usual& b, const stats::FarAbove& far, Diff& to) {
  const TimeChange& step = to.times[0];
  std::vector<double> of_a = extra_of(a, far.a, step.a);
  std::vector<double> of_b = extra_of(b, far.b, step.b);
  const auto far_a = pauses(a, of_a, step.a, to.lengths_b.longest_ns);
  const auto far_b = pauses(b, of_b, step.b, to.lengths_a.longest_ns);
  put_long(a, of_a, far_a, "A", to, to.lengths_a);
  put_long(b, of_b, far_b, "B", to, to.lengths_b);
  const auto d = stats::difference(of_a, of_b, all_of(of_a, of_b));
  if (!d) return;
  const auto [low, high] = d->interval();
  for (const std::size_t i : far_a) of_a[i] = 0;
  for (const std::size_t i : far_b) of_b[i] = 0;
  const auto rest = stats::difference(of_a, of_b, all_of(of_a, of_b));
  const std::vector<double>& more = rest->b > rest->a ? of_b : of_a;
  const double of_two = 2 * *std::ranges::max_element(more) / static_cast<double>(more.size());
  const double noise = std::min(rest->noise(to.times.size() + 1), of_two + step.noise);
  to.times.push_back(
      {Of::long_steps, {}, d->a, d->b, low, high, std::max(kLeastOfStep * step.a, noise)});
}

}  // namespace tprof::diff
