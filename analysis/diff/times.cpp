// Compares the times of two runs by their steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diff/usual.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;
using read::Amounts;

constexpr double kMuchInFew = 1.0 / 3;  // of the time, in steps that are far above most

// With more of the waiting that may be transfers, the two are one part.
constexpr double kMostUnmet = 0.1;

// By how much a figure surely grew or shrank. Nullopt: too few steps have it, or nobody knows.
std::optional<stats::Difference> difference(const Series& a, const Series& b) {
  const auto grew = stats::difference(a.most, b.least, all_of(a.most, b.least));
  if (grew && grew->b >= grew->a) return grew;
  const auto shrank = stats::difference(a.least, b.most, all_of(a.least, b.most));
  return shrank && shrank->b < shrank->a ? shrank : std::nullopt;
}

// The part of the device's time in calls of a bucket that is exposed, in the same steps.
std::optional<double> exposed_ns(const Usual& side, Bucket bucket) {
  double all = 0;
  std::size_t steps = 0;
  for (const Step* step : side.steps) {
    Amounts sum;
    double exposed = 0;  // of the timed calls
    for (const auto& [kind, s] : step->kinds) {
      if (kind.bucket != bucket) continue;
      sum += s;
      if (s.device_ns == 0) continue;
      const auto share = exposed_share(side.run, kind);
      if (!share) return std::nullopt;
      exposed += *share * static_cast<double>(s.device_ns);
    }
    if (sum.device_ns == 0) continue;
    ++steps;
    all += device_ns(sum) / side.ranks() * exposed / static_cast<double>(sum.device_ns);
  }
  return steps == 0 ? std::nullopt : std::optional(all / static_cast<double>(steps));
}

// How much of a call is exposed is known of a whole run only, so exposed time is that share of the
// device's. Its noise is taken for that of what it is the difference of: the device's time in these
// calls, and the computation beside them, which is no noisier than the step.
void add_exposed(const Usual& a, const Usual& b, std::vector<TimeChange>& to) {
  const TimeChange step = to[0];
  for (std::size_t i = 0, n = to.size(); i < n; ++i) {
    const TimeChange device = to[i];
    if (device.of != Of::device || is_copy(device.kind.bucket)) continue;
    const auto of_a = exposed_ns(a, device.kind.bucket);
    const auto of_b = exposed_ns(b, device.kind.bucket);
    if (!of_a || !of_b) continue;
    const double half = (device.high - device.low + step.high - step.low) / 2;
    to.push_back({Of::exposed, device.kind, *of_a, *of_b, *of_b - *of_a - half,
                  *of_b - *of_a + half, device.noise + step.noise});
  }
}

std::string too_few(const Run& a, const Run& b) {
  for (const auto& [run, name] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
    if (run->steps_seen != 0) continue;
    return fmt::format("no steps of {} are known{}{}", name, run->no_steps.empty() ? "" : ": ",
                       run->no_steps);
  }
  return fmt::format("it takes {} usual steps of all ranks behind the first, and A has {} and B {}",
                     stats::kFewestUsual, a.steps.size(), b.steps.size());
}

Lengths lengths_of(const Usual& side, const std::vector<double>& other) {
  const std::vector<double>& of = side.lengths;
  const double most = *std::ranges::max_element(other);
  std::vector<std::int64_t> beyond;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i] > most) beyond.push_back(side.run.steps[i].number);
  }
  return {.steps = of.size(),
          .beyond = std::move(beyond),
          .mean_ns = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size()),
          .median_ns = stats::median(of),
          .longest_ns = *std::ranges::max_element(of)};
}

// Why no times are known of the calls that a filter leaves; empty: both runs have such calls in
// their steps, which have the calls that get lines.
std::string none_of_these(const Run& a, const Run& b) {
  const auto in_steps = [](const Run& run) {
    return std::ranges::any_of(run.steps, [](const stats::StepCalls& s) {
      return std::ranges::any_of(s.kinds, [](const auto& k) { return k.second.calls != 0; });
    });
  };
  const bool of_a = in_steps(a);
  const bool of_b = in_steps(b);
  if (of_a && of_b) return "";
  return fmt::format("{} no lines of these calls in {} steps",
                     of_a   ? "B has"
                     : of_b ? "A has"
                            : "A and B have",
                     of_a || of_b ? "its" : "their");
}

// Returns the part of the time that is in those that are far.
double share_of(const std::vector<double>& lengths, const std::vector<bool>& far) {
  double sum = 0;
  double of_far = 0;
  for (std::size_t i = 0; i < far.size(); ++i) {
    sum += lengths[i];
    if (far[i]) of_far += lengths[i];
  }
  return sum > 0 ? of_far / sum : 0;
}

// How much longer a step seems on average, at most, by where in a wait for the device the first and
// the last one are.
double part_of_longest(const std::vector<double>& lengths, const std::vector<bool>& far) {
  double most = 0;
  for (std::size_t i = 0; i < far.size(); ++i) most = std::max(most, far[i] ? 0 : lengths[i]);
  return most / static_cast<double>(lengths.size());
}

}  // namespace

bool TimeChange::changed() const {
  return std::abs(b - a) > noise;
}

void compare_times(const Run& run_a, const Run& run_b, Diff& to) {
  if (to.unlike) {
    to.no_times = "the steps of A and B are not comparable";
    return;
  }
  const bool by_devices = run_a.by_devices && run_b.by_devices;
  if (run_a.by_devices != run_b.by_devices && !run_a.steps.empty() && !run_b.steps.empty()) {
    to.notes.push_back(
        fmt::format("the devices were followed in {} only (TPROF_TIMING): steps are compared by "
                    "the hosts, which may run ahead of their devices",
                    run_a.by_devices ? "A" : "B"));
  }
  Usual a(run_a, by_devices);
  Usual b(run_b, by_devices);
  stats::FarAbove far = stats::far_above(a.lengths, b.lengths);
  if (run_a.of_some_calls()) {
    to.no_times = none_of_these(run_a, run_b);
    if (!to.no_times.empty()) return;
  }
  const bool ran_ahead =
      !by_devices && (run_a.may_run_ahead || run_b.may_run_ahead) &&
      std::max(share_of(a.lengths, far.a), share_of(b.lengths, far.b)) > kMuchInFew;
  if (ran_ahead) far = one_pause(a, b);
  const auto step = stats::difference(a.lengths, b.lengths, far);
  if (!step) {
    to.no_times = too_few(run_a, run_b);
    return;
  }
  to.lengths_a = lengths_of(a, b.lengths);
  to.lengths_b = lengths_of(b, a.lengths);
  a.leave_out(far.a);
  b.leave_out(far.b);
  std::vector<stats::Difference> all;
  const auto add = [&](Of of, const OpKind& kind, const stats::Difference& d) {
    const auto [low, high] = d.interval();
    to.times.push_back({of, kind, d.a, d.b, low, high});
    all.push_back(d);
  };
  add(Of::step, {}, *step);
  const bool waiting_known = std::max(run_a.unmet_share, run_b.unmet_share) <= kMostUnmet;
  const Figures of_b = figures_of(b, waiting_known);
  for (const auto& [figure, series] : figures_of(a, waiting_known)) {
    const auto same = of_b.find(figure);
    if (same == of_b.end()) continue;
    if (const auto d = difference(series, same->second)) add(figure.first, figure.second, *d);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    TimeChange& t = to.times[i];
    t.noise = all[i].noise(all.size());
    if (t.of < Of::exposed) t.noise = std::max(kLeastOfStep * step->a, t.noise);
  }
  if (ran_ahead) {
    to.notes.emplace_back(
        "few steps have much of the time, as hosts run ahead of their devices until they wait: the "
        "means of all steps are compared");
    const double edges = part_of_longest(a.lengths, far.a) + part_of_longest(b.lengths, far.b);
    to.times[0].noise = std::max(kLeastOfStep * step->a, std::min(to.times[0].noise, edges));
  }
  const auto any = [](const std::vector<bool>& f) { return std::ranges::count(f, true) != 0; };
  if (!ran_ahead || any(far.a) || any(far.b)) compare_long_steps(a, b, far, to);
  add_exposed(a, b, to.times);
  if (run_a.of_some_calls()) {  // steps are as long as all of their calls make them
    std::erase_if(to.times, [](const TimeChange& t) { return t.of < Of::exposed; });
    to.lengths_a = to.lengths_b = {};
  }
  const auto worse = [&](auto&&... of) {
    return std::ranges::any_of(to.times, [&](const TimeChange& t) {
      return ((t.of == of) || ...) && t.changed() && t.worse();
    });
  };
  if (worse(Of::waiting, Of::communication) && worse(Of::busbw)) {
    to.notes.emplace_back(
        "bandwidths are of the whole time that calls take on the device, waiting for other ranks "
        "with it, which grew: that they fell need be no change of the network");
  }
  if (!run_a.whole_steps || !run_b.whole_steps) {
    to.notes.emplace_back("what is a step here may be one of its micro-batches");
  }
}

}  // namespace tprof::diff
