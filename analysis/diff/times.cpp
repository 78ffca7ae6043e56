// Compares the times of two runs by their steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "diff/compare.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;
using stats::CallSums;

struct Usual {
  const Run& run;
  std::vector<const stats::StepCalls*> steps{};  // without those that took far longer
  std::vector<double> lengths{};                 // of all

  explicit Usual(const Run& of) : run(of) {
    for (const stats::StepCalls& s : run.steps) {
      lengths.push_back(s.length_ns / static_cast<double>(s.ranks));
    }
  }
  void leave_out(const std::vector<bool>& far) {
    for (std::size_t i = 0; i < far.size(); ++i) {
      if (!far[i]) steps.push_back(&run.steps[i]);
    }
  }
  double ranks() const {
    return static_cast<double>(std::max<std::uint64_t>(run.steps[0].calling, 1));
  }
};

using Series = std::map<OpKind, std::vector<double>>;

// The sums of each step, by what `project` leaves of a kind, as `figure` makes values of them.
template <typename Project, typename Figure>
Series series(const Usual& side, const Project& project, const Figure& figure) {
  Series all;
  for (const stats::StepCalls* step : side.steps) {
    std::map<OpKind, CallSums> sums;
    for (const auto& [kind, s] : step->kinds) sums[project(kind)] += s;
    for (const auto& [kind, s] : sums) {
      const double value = figure(kind, s, side);
      if (value > 0) all[kind].push_back(value);
    }
  }
  return all;
}

OpKind bucket_alone(const OpKind& kind) {
  return {.bucket = kind.bucket};
}
OpKind of_any_type(OpKind kind) {
  kind.dtype.clear();
  return kind;
}

// Where one call of several is timed, the others take as long.
double device_ns(const OpKind& /*kind*/, const CallSums& s, const Usual& side) {
  if (s.device_timed == 0) return 0;
  return static_cast<double>(s.device_ns) * static_cast<double>(s.calls) /
         static_cast<double>(s.device_timed) / side.ranks();
}
double host_ns(const OpKind& kind, const CallSums& s, const Usual& side) {
  return stats::has_host_side(kind.bucket) ? static_cast<double>(s.host_ns) / side.ranks() : 0;
}
// busbw, of copies algbw.
double bandwidth(const OpKind& kind, const CallSums& s, const Usual& side) {
  const std::int64_t n = kind.size == "world" ? side.run.world : std::atoll(kind.size.c_str());
  const read::Amounts a = {
      .device_ns = s.device_ns, .device_timed = s.device_timed, .device_bytes = s.device_bytes};
  const auto algbw = stats::algbw(a);
  return stats::busbw({kind.bucket, {}, {}, {}, n}, a).value_or(algbw.value_or(0));
}

// Exposed time is known of a whole run only. Its noise is taken for that of what it is the
// difference of: the device's time in these calls, and the computation beside them, which is no
// noisier than the step.
void add_exposed(const Usual& a, const Usual& b, std::vector<TimeChange>& to) {
  const auto exposed = [](const Run& run, Bucket bucket) -> std::optional<double> {
    double sum = 0;
    for (const auto& [kind, amounts] : run.totals) {
      const auto lost = kind.bucket == bucket ? lost_ns(run, kind) : 0.0;
      if (!lost) return std::nullopt;
      sum += *lost;
    }
    return sum;
  };
  const TimeChange step = to[0];
  for (std::size_t i = 0, n = to.size(); i < n; ++i) {
    const TimeChange device = to[i];
    if (device.of != Of::device || is_copy(device.kind.bucket)) continue;
    const auto of_a = exposed(a.run, device.kind.bucket);
    const auto of_b = exposed(b.run, device.kind.bucket);
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

// Leaves none out.
stats::FarAbove all_of(const std::vector<double>& a, const std::vector<double>& b) {
  return {std::vector<bool>(a.size()), std::vector<bool>(b.size())};
}

// Tells of the steps that took far longer, and compares what they add to a step on average.
void compare_long_steps(const Usual& a, const Usual& b, const stats::FarAbove& far, double noise,
                        Diff& to) {
  const auto extra = [&](const Usual& side, const std::vector<bool>& far_ones, double usual,
                         const char* name) {
    std::vector<double> all;
    for (std::size_t i = 0; i < far_ones.size(); ++i) {
      all.push_back(far_ones[i] ? side.lengths[i] - usual : 0);
    }
    const auto n = std::ranges::count(far_ones, true);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    if (n != 0) {
      to.notes.push_back(fmt::format(
          "{} of {} steps of {} took far longer than most, {:.1f} ms more on average: left "
          "out of the times of the usual step",
          n, all.size(), name, sum / static_cast<double>(n) / 1e6));
    }
    return all;
  };
  const std::vector<double> of_a = extra(a, far.a, to.times[0].a, "A");
  const std::vector<double> of_b = extra(b, far.b, to.times[0].b, "B");
  const auto d = stats::difference(of_a, of_b, all_of(of_a, of_b));
  if (!d) return;
  const auto [low, high] = d->interval();
  to.times.push_back(
      {Of::long_steps, {}, d->a, d->b, low, high, std::max(noise, d->noise(to.times.size() + 1))});
}

}  // namespace

bool TimeChange::changed() const {
  return std::abs(b - a) > noise;
}

void compare_times(const Run& run_a, const Run& run_b, Diff& to) {
  Usual a(run_a);
  Usual b(run_b);
  const auto step = stats::difference(a.lengths, b.lengths);
  if (!step) {
    to.no_times = too_few(run_a, run_b);
    return;
  }
  const stats::FarAbove far = stats::far_above(a.lengths, b.lengths);
  a.leave_out(far.a);
  b.leave_out(far.b);
  std::vector<stats::Difference> all;
  const auto add = [&](Of of, const OpKind& kind, const stats::Difference& d) {
    const auto [low, high] = d.interval();
    to.times.push_back({of, kind, d.a, d.b, low, high});
    all.push_back(d);
  };
  add(Of::step, {}, *step);
  const auto compare = [&](Of of, const auto& project, const auto& figure) {
    const Series of_b = series(b, project, figure);
    for (const auto& [kind, values] : series(a, project, figure)) {
      const auto same = of_b.find(kind);
      if (same == of_b.end()) continue;
      const auto d = stats::difference(values, same->second, all_of(values, same->second));
      if (d) add(of == Of::busbw && is_copy(kind.bucket) ? Of::algbw : of, kind, *d);
    }
  };
  compare(Of::device, bucket_alone, device_ns);
  compare(Of::host, bucket_alone, host_ns);
  compare(Of::busbw, of_any_type, bandwidth);
  for (std::size_t i = 0; i < all.size(); ++i) to.times[i].noise = all[i].noise(all.size());
  compare_long_steps(a, b, far, 0.01 * step->a, to);
  add_exposed(a, b, to.times);
  if (run_a.of_some_calls()) {  // steps are as long as all of their calls make them
    std::erase_if(to.times,
                  [](const TimeChange& t) { return t.of == Of::step || t.of == Of::long_steps; });
  }
  if (!run_a.whole_steps || !run_b.whole_steps) {
    to.notes.emplace_back("what is a step here may be one of its micro-batches");
  }
}

}  // namespace tprof::diff
