// Compares the times of two runs by their steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "diff/compare.h"

namespace tprof::diff {
namespace {

constexpr double kLeastOfStep = 0.01;  // smaller changes of a step are of no interest

// The compared steps of a run.
struct Usual {
  const Run& run;
  std::vector<const Step*> steps{};  // without outstanding ones
  std::vector<double> lengths{};     // of all steps
};

using Of = TimeChange::Of;
using read::Amounts;

constexpr double kMuchInFew = 1.0 / 3;  // share of the time in steps far above most

// If more of the waits may be transfers, the two are one part.
constexpr double kMostUnmet = 0.1;

// A figure of the usual steps, in order: lower and upper bounds.
struct Series {
  std::vector<double> least{};
  std::vector<double> most{};
};
using Figures = std::map<std::pair<Of, OpKind>, Series>;

Usual usual_of(const Run& run, bool by_devices) {
  Usual side{run};
  for (const Step& s : run.steps) {
    side.lengths.push_back(
        by_devices ? s.device_ns : static_cast<double>(s.host_ns) / static_cast<double>(s.hosts));
  }
  return side;
}

double ranks_of(const Usual& side) {
  return static_cast<double>(std::max<std::uint64_t>(side.run.steps[0].calling, 1));
}

// busbw; algbw for copies.
double bandwidth(const OpKind& kind, const Amounts& s, const Run& run) {
  const std::int64_t n = kind.size == "world" ? run.world : std::atoll(kind.size.c_str());
  const read::Amounts a = {
      .device_ns = s.device_ns, .device_timed = s.device_timed, .device_bytes = s.device_bytes};
  const auto algbw = tables::algbw(a);
  return tables::busbw({kind.bucket, {}, {}, {}, n}, a).value_or(algbw.value_or(0));
}

// Returns the parts of a step, and the times and bandwidths of its calls. `waiting_known`: waits
// can be separated from transfers.
Figures figures_of(const Usual& side, bool waiting_known) {
  Figures all;
  const auto add = [&](Of of, const OpKind& kind, double least, double more = 0) {
    Series& series = all[{of, kind}];
    series.least.push_back(least);
    series.most.push_back(least + more);
  };
  const auto if_any = [&](Of of, const OpKind& kind, double value) {
    if (value > 0) add(of, kind, value);
  };
  for (const Step* step : side.steps) {
    if (const auto& p = step->parts) {
      add(Of::compute, {}, p->compute, p->unsure);
      add(Of::unsure, {}, p->unsure);
      if (waiting_known) add(Of::waiting, {}, p->wait);
      if (waiting_known) add(Of::transfers, {}, p->exposed - p->wait);
      if (!waiting_known) add(Of::communication, {}, p->exposed);
      add(Of::idle, {}, p->idle(), p->unsure);
    }
    std::map<OpKind, Amounts> buckets;
    std::map<OpKind, Amounts> of_any_type;
    for (const auto& [kind, sums] : step->kinds) {
      buckets[{.bucket = kind.bucket}] += sums;
      OpKind any_type = kind;
      any_type.dtype.clear();
      of_any_type[any_type] += sums;
    }
    for (const auto& [kind, sums] : buckets) {
      if_any(Of::device, kind, device_ns(sums) / ranks_of(side));
      if (!tables::has_host_side(kind.bucket)) continue;
      if_any(Of::host, kind, static_cast<double>(sums.host_ns) / ranks_of(side));
    }
    for (const auto& [kind, sums] : of_any_type) {
      if_any(is_copy(kind.bucket) ? Of::algbw : Of::busbw, kind, bandwidth(kind, sums, side.run));
    }
  }
  return all;
}

// Returns by how much a figure certainly grew or shrank. Nullopt: too few steps have it, or
// unclear.
std::optional<Difference> sure_difference(const Series& a, const Series& b) {
  const auto grew = difference(a.most, b.least, {});
  if (grew && grew->b >= grew->a) return grew;
  const auto shrank = difference(a.least, b.most, {});
  return shrank && shrank->b < shrank->a ? shrank : std::nullopt;
}

// Returns the exposed part of a bucket's device time in these steps.
std::optional<double> exposed_ns(const Usual& side, Bucket bucket) {
  double all = 0;
  std::size_t steps = 0;
  for (const Step* step : side.steps) {
    Amounts sum;
    double exposed = 0;  // of timed calls
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
    all += device_ns(sum) / ranks_of(side) * exposed / static_cast<double>(sum.device_ns);
  }
  return steps == 0 ? std::nullopt : std::optional(all / static_cast<double>(steps));
}

// The exposed share is known for a whole run only, so exposed time is that share of device time. It
// is device time minus concurrent computation, so its noise is that of these two; computation is no
// noisier than the step.
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
  return fmt::format(
      "this needs {} usual steps of all ranks after the first, but A has {} and B {}", kFewestUsual,
      a.steps.size(), b.steps.size());
}

Lengths lengths_of(const Usual& side, const std::vector<double>& other) {
  const std::vector<double>& of = side.lengths;
  const double most = *std::ranges::max_element(other);
  std::vector<std::int64_t> beyond;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i] > most) beyond.push_back(side.run.steps[i].step);
  }
  return {.steps = of.size(),
          .beyond = std::move(beyond),
          .mean_ns = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size()),
          .median_ns = median(of),
          .longest_ns = *std::ranges::max_element(of)};
}

// Returns why no times are known for the calls that pass a filter; empty: both runs have such calls
// in their steps.
std::string none_of_these(const Run& a, const Run& b) {
  const auto in_steps = [](const Run& run) {
    return std::ranges::any_of(run.steps, [](const tables::StepCalls& s) {
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

// Returns the share of the time in `far` steps.
double share_of(const std::vector<double>& lengths, const std::vector<bool>& far) {
  double sum = 0;
  double of_far = 0;
  for (std::size_t i = 0; i < far.size(); ++i) {
    sum += lengths[i];
    if (far[i]) of_far += lengths[i];
  }
  return sum > 0 ? of_far / sum : 0;
}

// Returns the largest error of the mean step that comes from beginning and ending within a wait for
// the device.
double part_of_longest(const std::vector<double>& lengths, const std::vector<bool>& far) {
  double most = 0;
  for (std::size_t i = 0; i < far.size(); ++i) most = std::max(most, far[i] ? 0 : lengths[i]);
  return most / static_cast<double>(lengths.size());
}

// From this ratio on, a pause is not the same thing on another day: checkpoints of one program took
// 0.7 s and 1.7 s.
constexpr double kFarLonger = 4;
constexpr double kLeastPause = 100e6;  // ns; a busy host's scheduler takes less

// Returns how much more than usual each step takes, if it stands out.
std::vector<double> extra_of(const Usual& side, const std::vector<bool>& far, double usual) {
  std::vector<double> all;
  for (std::size_t i = 0; i < far.size(); ++i) all.push_back(far[i] ? side.lengths[i] - usual : 0);
  return all;
}

// Returns the steps that are far longer than any of the other run; none if they add too little.
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
    lengths.far.push_back(side.run.steps[i].step);
    lengths.far_ns += extra[i];
  }
  if (lengths.out == 0) return;
  to.notes.push_back(fmt::format(
      "{} of {} steps of {} {} out from the usual ones, {:.1f} ms longer on average, the longest "
      "by {:.1f} ms: they are left out of the times of the usual step",
      lengths.out, lengths.steps, name, lengths.out == 1 ? "stands" : "stand",
      lengths.out_ns / static_cast<double>(lengths.out) / 1e6, std::ranges::max(extra) / 1e6));
}

// Returns the one step that is far longer than all others of both runs, if its run is longer by as
// much: a host that ran ahead may wait in one step for everything it called before. Else none.
FarAbove one_pause(const Usual& a, const Usual& b) {
  FarAbove found{std::vector<bool>(a.lengths.size()), std::vector<bool>(b.lengths.size())};
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

// Notes the steps that stand out, and compares what they add to a step on average.
//
// Student's t says nothing about a few pauses. So they also count as a change if they add more than
// two of the longest pauses, as one in each run may be chance, and more than the usual steps may
// differ. Pauses far longer than any of the other run are no chance.
void compare_long_steps(const Usual& a, const Usual& b, const FarAbove& far, Diff& to) {
  const TimeChange& step = to.times[0];
  std::vector<double> of_a = extra_of(a, far.a, step.a);
  std::vector<double> of_b = extra_of(b, far.b, step.b);
  const auto far_a = pauses(a, of_a, step.a, to.lengths_b.longest_ns);
  const auto far_b = pauses(b, of_b, step.b, to.lengths_a.longest_ns);
  put_long(a, of_a, far_a, "A", to, to.lengths_a);
  put_long(b, of_b, far_b, "B", to, to.lengths_b);
  const auto d = difference(of_a, of_b, {});
  if (!d) return;
  const auto [low, high] = d->interval();
  for (const std::size_t i : far_a) of_a[i] = 0;
  for (const std::size_t i : far_b) of_b[i] = 0;
  const auto rest = difference(of_a, of_b, {});
  const std::vector<double>& more = rest->b > rest->a ? of_b : of_a;
  const double of_two = 2 * *std::ranges::max_element(more) / static_cast<double>(more.size());
  const double noise = std::min(rest->noise(to.times.size() + 1), of_two + step.noise);
  to.times.push_back(
      {Of::long_steps, {}, d->a, d->b, low, high, std::max(kLeastOfStep * step.a, noise)});
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
        fmt::format("only {} has device times (TPROF_TIMING): steps are compared by the hosts, "
                    "which may run ahead of their devices",
                    run_a.by_devices ? "A" : "B"));
  }
  Usual a = usual_of(run_a, by_devices);
  Usual b = usual_of(run_b, by_devices);
  FarAbove far = far_above(a.lengths, b.lengths);
  if (run_a.of_some_calls()) {
    to.no_times = none_of_these(run_a, run_b);
    if (!to.no_times.empty()) return;
  }
  const bool ran_ahead =
      !by_devices && (run_a.may_run_ahead || run_b.may_run_ahead) &&
      std::max(share_of(a.lengths, far.a), share_of(b.lengths, far.b)) > kMuchInFew;
  if (ran_ahead) far = one_pause(a, b);
  const auto step = difference(a.lengths, b.lengths, far);
  if (!step) {
    to.no_times = too_few(run_a, run_b);
    return;
  }
  to.lengths_a = lengths_of(a, b.lengths);
  to.lengths_b = lengths_of(b, a.lengths);
  for (const auto& [side, out] : {std::pair(&a, &far.a), std::pair(&b, &far.b)}) {
    for (std::size_t i = 0; i < out->size(); ++i) {
      if (!(*out)[i]) side->steps.push_back(&side->run.steps[i]);
    }
  }
  std::vector<Difference> all;
  const auto add = [&](Of of, const OpKind& kind, const Difference& d) {
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
    if (const auto d = sure_difference(series, same->second)) add(figure.first, figure.second, *d);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    TimeChange& t = to.times[i];
    t.noise = all[i].noise(all.size());
    if (t.of < Of::exposed) t.noise = std::max(kLeastOfStep * step->a, t.noise);
  }
  if (ran_ahead) {
    to.notes.emplace_back(
        "a few steps take much of the time, as hosts run ahead of their devices until they wait: "
        "the means of all steps are compared");
    const double edges = part_of_longest(a.lengths, far.a) + part_of_longest(b.lengths, far.b);
    to.times[0].noise = std::max(kLeastOfStep * step->a, std::min(to.times[0].noise, edges));
  }
  const auto any = [](const std::vector<bool>& f) { return std::ranges::count(f, true) != 0; };
  if (!ran_ahead || any(far.a) || any(far.b)) compare_long_steps(a, b, far, to);
  add_exposed(a, b, to.times);
  if (run_a.of_some_calls()) {  // other calls also determine the length of steps
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
        "bandwidths are computed from the calls' whole time on the device, including waits for "
        "other ranks, which grew: lower ones may not be the network's fault");
  }
  if (!run_a.whole_steps || !run_b.whole_steps) {
    to.notes.emplace_back("each step here may be a micro-batch");
  }
}

}  // namespace tprof::diff
