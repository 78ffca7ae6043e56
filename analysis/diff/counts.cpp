// Pairs the calls of two runs and compares their counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "diff/compare.h"

namespace tprof::diff {
namespace {

constexpr long double kMoreSteps = 1.5;

template <typename Sums>
Count per(std::uint64_t ranks, const Sums& s) {
  const auto n = static_cast<long double>(std::max<std::uint64_t>(ranks, 1));
  return {static_cast<long double>(s.calls) / n, static_cast<long double>(s.elements) / n,
          static_cast<long double>(s.bytes) / n};
}

// The calls of a kind in each step.
std::vector<read::Amounts> in_steps(const Run& run, const OpKind& kind) {
  std::vector<read::Amounts> all;
  for (const tables::StepCalls& step : run.steps) {
    const auto found = step.kinds.find(kind);
    all.push_back(found == step.kinds.end() ? read::Amounts{} : found->second);
  }
  return all;
}

template <typename T, typename Of>
auto lower_median(std::vector<T>& all, const Of& of) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::ranges::nth_element(all, middle, {}, of);
  return std::invoke(of, *middle);
}

// Returns the usual count per rank; nullopt: none is usual. For calls in every second micro-batch
// the whole run counts, since the median times the number of steps would be twice as many.
std::optional<Count> usual(const Run& run, const OpKind& kind) {
  std::vector<read::Amounts> all = in_steps(run, kind);
  if (all.empty()) return std::nullopt;
  constexpr double kUsual = 0.6;  // of the steps have as many calls as the median step
  read::Amounts middle;
  for (const auto of : {&read::Amounts::calls, &read::Amounts::elements, &read::Amounts::bytes}) {
    middle.*of = lower_median(all, of);
  }
  const auto alike = std::ranges::count(all, middle.calls, &read::Amounts::calls);
  if (static_cast<double>(alike) < kUsual * static_cast<double>(all.size())) return std::nullopt;
  return per(run.steps[0].calling, middle);
}

struct Counted {
  OpKind kind{};
  std::optional<Count> step = Count{};  // the usual step; nullopt: none
  Count total{};                        // of the whole run
  long double in_step() const { return step ? step->calls : 0; }
};
using Side = std::vector<Counted>;

Side counted(const Run& run) {
  Side all;
  for (const auto& [kind, amounts] : run.totals) {
    all.push_back({kind, usual(run, kind), per(run.ranks, amounts)});
    const auto callers = run.callers.find(kind);
    if (callers == run.callers.end()) continue;
    all.back().total.callers = callers->second.size();
    all.back().total.of_ranks = run.ranks;
  }
  return all;
}

struct Pair {
  std::optional<Counted> a;
  std::optional<Counted> b;
};

// Moves to `pairs` what fits and is unique on each side after `project`.
template <typename Project, typename Fit>
void pair_up(Side& a, Side& b, std::vector<Pair>& pairs, const Project& project, const Fit& fit) {
  std::map<OpKind, std::pair<Side, Side>> groups;
  const auto projected = [&](OpKind kind) {
    project(kind);
    return kind;
  };
  for (const Counted& c : a) groups[projected(c.kind)].first.push_back(c);
  for (const Counted& c : b) groups[projected(c.kind)].second.push_back(c);
  a.clear();
  b.clear();
  for (const auto& [kind, group] : groups) {
    const auto& [of_a, of_b] = group;
    if (of_a.size() == 1 && of_b.size() == 1 && fit(of_a[0], of_b[0])) {
      pairs.push_back({of_a[0], of_b[0]});
      continue;
    }
    a.insert(a.end(), of_a.begin(), of_a.end());
    b.insert(b.end(), of_b.begin(), of_b.end());
  }
}

std::vector<Pair> pairs_of(Side a, Side b) {
  std::vector<Pair> all;
  const auto any = [](const Counted&, const Counted&) { return true; };
  const auto as_often = [](const Counted& x, const Counted& y) {
    return x.in_step() != 0 && y.step ? same(x.in_step(), y.in_step())
                                      : same(x.total.calls, y.total.calls);
  };
  const auto as_many_elements = [&](const Counted& x, const Counted& y) {
    return as_often(x, y) &&
           same(x.total.elements / x.total.calls, y.total.elements / y.total.calls);
  };
  const auto elsewhere = [](OpKind& k) {  // on communicators of another size or role
    k.size.clear();
    if (!is_copy(k.bucket)) k.role.clear();
  };
  pair_up(
      a, b, all, [](OpKind&) {}, any);
  pair_up(a, b, all, elsewhere, any);
  pair_up(
      a, b, all, [&](OpKind& k) { elsewhere(k), k.dtype.clear(), k.bytes_class = 0; },
      as_many_elements);
  pair_up(
      a, b, all, [&](OpKind& k) { elsewhere(k), k.bytes_class = 0; }, as_often);
  for (const Counted& c : a) all.push_back({c, std::nullopt});
  for (const Counted& c : b) all.push_back({std::nullopt, c});
  return all;
}

// Returns the most frequent ratio; of several 1, else the smallest; 1 if there are none.
long double most_frequent(std::vector<long double> ratios) {
  std::ranges::sort(ratios);
  long double found = 1;
  std::ptrdiff_t most = 0;
  for (auto from = ratios.begin(); from != ratios.end();) {
    const auto to =
        std::find_if(from, ratios.end(), [&](long double r) { return !same(r, *from); });
    const bool one = same(*from, 1);
    if (to - from > most || (one && to - from == most)) {
      most = to - from;
      found = one ? 1 : *from;
    }
    from = to;
  }
  return found;
}

// Returns by which factor B is longer, according to most kinds of calls. A single kind may just
// have more calls per step.
long double longer(const std::vector<Pair>& pairs) {
  std::vector<long double> ratios;
  for (const Pair& p : pairs) {
    if (p.a && p.b) ratios.push_back(p.b->total.calls / p.a->total.calls);
  }
  return ratios.size() < 2 ? 1 : most_frequent(std::move(ratios));
}

// Checks whether a step of one run is the same thing as a step of the other, by all calls except
// those made once for several micro-batches. Nullopt: they are comparable.
std::optional<Unlike> unlike(const Run& a, const Run& b, const std::vector<Pair>& pairs) {
  if (a.steps.empty() || b.steps.empty()) return std::nullopt;
  long double ratio = 0;
  std::vector<long double> longer;
  for (const Pair& p : pairs) {
    const bool both = p.a && p.b && p.a->in_step() != 0 && p.b->in_step() != 0;
    if (!both || tables::once_for_several(p.b->kind.bucket)) continue;
    const long double r = p.a->in_step() / p.b->in_step();
    if (ratio != 0 && !same(r, ratio)) return std::nullopt;
    ratio = r;
    longer.push_back(p.b->total.calls / p.a->total.calls);
  }
  if (ratio == 0) return std::nullopt;
  const Unlike u{.in_a = ratio > 1, .times = std::max(ratio, 1 / ratio)};
  if (u.times < 2 || !same(u.times, std::round(u.times))) return std::nullopt;
  // With equally many steps, each just has more work: a larger batch is a change of the step.
  const Run& small = u.in_a ? b : a;
  const Run& large = u.in_a ? a : b;
  if (small.whole_steps) return std::nullopt;
  const auto steps = [](const Run& run) { return static_cast<long double>(run.steps_seen); };
  if (steps(small) < kMoreSteps * steps(large)) return std::nullopt;
  Unlike found = u;
  found.times = std::round(u.times);
  found.longer = most_frequent(std::move(longer));
  return found;
}

// Says why no counts of common calls are compared.
std::string why_none(const Run& a, const Run& b, const Diff& d) {
  if (d.per_step) {
    return "the usual steps have none of these calls; outside of these, only finished runs of "
           "equal length are compared";
  }
  const char* who = a.ended ? "B" : b.ended ? "A" : "A and B";
  return fmt::format("{} did not end, or {} incomplete{}", who, a.ended || b.ended ? "is" : "are",
                     d.unlike ? "" : ", and no usual steps are known for both");
}

}  // namespace

bool same(long double a, long double b) {
  const long double doubt = 8 * std::numeric_limits<long double>::epsilon();
  return std::abs(a - b) <= doubt * std::max(std::abs(a), std::abs(b));
}

std::optional<double> exposed_share(const Run& run, const OpKind& kind) {
  const auto found = run.totals.find(kind);
  if (found == run.totals.end() || found->second.exposure_known_ns == 0) return std::nullopt;
  const read::Amounts& a = found->second;
  return std::min(1.0,
                  static_cast<double>(a.exposed_ns) / static_cast<double>(a.exposure_known_ns));
}

std::optional<double> lost_ns(const Run& run, const OpKind& kind) {
  if (!run.totals.contains(kind)) return 0;
  const bool copy = is_copy(kind.bucket);
  const auto share = copy ? 1.0 : exposed_share(run, kind);
  if (!share) return std::nullopt;
  std::vector<double> all;
  for (const read::Amounts& s : in_steps(run, kind)) {
    const double ns = copy ? static_cast<double>(s.host_ns) : device_ns(s);
    const std::uint64_t ranks = run.steps[all.size()].calling;
    all.push_back(ns / static_cast<double>(std::max<std::uint64_t>(ranks, 1)));
  }
  return all.empty() ? 0 : *share * lower_median(all, std::identity{});
}

double device_ns(const read::Amounts& s) {
  if (s.device_timed == 0) return 0;
  return static_cast<double>(s.device_ns) * static_cast<double>(s.calls) /
         static_cast<double>(s.device_timed);
}

bool CountChange::differs() const {
  return !same(a.calls, b.calls) || !same(a.elements, b.elements) || !same(a.bytes, b.bytes);
}

void compare_counts(const Run& a, const Run& b, Diff& to) {
  const std::vector<Pair> pairs = pairs_of(counted(a), counted(b));
  to.unlike = unlike(a, b, pairs);
  to.per_step = !a.steps.empty() && !b.steps.empty() && !to.unlike;
  if (!to.per_step) to.longer = to.unlike ? to.unlike->longer : longer(pairs);
  // Calls outside of the usual steps are comparable only between runs of equal length.
  const bool whole =
      to.same_traces || (a.ended && b.ended && (!to.per_step || a.steps_seen == b.steps_seen));
  std::size_t compared = 0;
  std::size_t not_compared = 0;
  for (const Pair& p : pairs) {
    const Counted x = p.a.value_or(Counted{});
    const Counted y = p.b.value_or(Counted{});
    CountChange c{.kind = p.b ? y.kind : x.kind, .per_step = to.per_step && x.step && y.step};
    if (c.per_step) c.a = *x.step, c.b = *y.step;
    if (!p.a || !p.b) c.only_in = p.a ? "A" : "B";
    if (p.a && p.b && x.kind != y.kind) c.was = x.kind;
    const bool in_steps = c.per_step && (x.in_step() != 0 || y.in_step() != 0);
    if (p.a && p.b) ++(in_steps || whole ? compared : not_compared);
    if (!c.differs()) c.per_step = false;
    if (!c.per_step) {
      if (!whole && c.only_in.empty()) continue;
      c.a = x.total;
      c.b = y.total;
      if (!c.differs()) continue;  // of the setup, whatever the runs' lengths
      const long double n = c.only_in.empty() ? to.longer : 1;
      c.a.calls *= n;
      c.a.elements *= n;
      c.a.bytes *= n;
    }
    if (!c.differs()) continue;
    const auto lost_a = lost_ns(a, x.kind);
    const auto lost_b = lost_ns(b, y.kind);
    if (c.per_step && lost_a && lost_b) c.cost_ns = *lost_b - *lost_a;
    to.counts.push_back(std::move(c));
  }
  std::ranges::stable_sort(to.counts, std::ranges::greater(), [](const CountChange& c) {
    const int news = is_copy(c.kind.bucket) ? 0 : c.only_in.empty() ? 1 : 2;
    return std::tuple(news, std::abs(c.cost_ns.value_or(0)), std::abs(c.b.bytes - c.a.bytes));
  });
  if (not_compared == 0) return;
  if (compared == 0) {
    to.no_counts = why_none(a, b, to);
    return;
  }
  to.notes.push_back(
      fmt::format("calls outside of the usual steps, or without lines, are not compared, since the "
                  "runs differ in length or did not end ({} of kinds that both have)",
                  not_compared));
}

}  // namespace tprof::diff
