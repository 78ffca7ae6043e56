// What the program does alike on all ranks, and what a step would be shorter by without it: these
// are choices, and may be wanted.
#include <algorithm>

#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Bytes;
using diagnose::Finding;
using diagnose::Findings;
using diagnose::Kind;
using diagnose::Ns;
using diagnose::Percent;

// A figure of each rank and step. The slowest rank shows the least of what is waited for, so a low
// one of the ranks tells what all would gain.
template <typename Of>
double of_a_step(const Evidence& e, Of&& of) {
  std::vector<double> each;
  for (const RankFacts& facts : e.times.facts) each.push_back(static_cast<double>(of(facts)));
  return quantile(each, 0.25) / static_cast<double>(e.steps.size());
}

Finding* tell(const Evidence& e, Kind kind, double ns, diagnose::Values values, Findings& found) {
  if (ns < kLeastShare * e.step_ns) return nullptr;
  values.emplace_back("share", Percent{100 * ns / e.step_ns});
  values.emplace_back("saves", Ns{std::llround(ns)});
  Finding& f = add(found, kind, e.times.ranks, std::move(values));
  f.cost = cost_of(e, ns, ns / 4);
  return &f;
}

// The operation with which gradients are reduced: all-reduce where nothing is reduce-scattered, and
// where hardly anything is all-reduced outside of the backward pass, as tensor parallelism does.
std::optional<Bucket> reduces_by(const read::Process& rank) {
  std::uint64_t scattered = 0;
  std::uint64_t reduced = 0;
  std::uint64_t backward = 0;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket == Bucket::RESHARDING) scattered += row.amounts.bytes;
    if (row.bucket != Bucket::ALLREDUCE) continue;
    reduced += row.amounts.bytes;
    if (row.thread == ThreadKind::autograd) backward += row.amounts.bytes;
  }
  if (scattered != 0) return Bucket::RESHARDING;
  return backward != 0 && backward >= reduced / 20 * 19 ? std::optional(Bucket::ALLREDUCE)
                                                        : std::nullopt;
}

}  // namespace

// All-gathers that begin only when the computation before them has ended.
void late_prefetch(const Evidence& e, Findings& found) {
  const double gathers = of_a_step(e, [](const RankFacts& f) { return f.gathers; });
  const double late = of_a_step(e, [](const RankFacts& f) { return f.late_gathers; });
  if (gathers < 2 || late * 2 < gathers) return;
  tell(e, Kind::late_prefetch, of_a_step(e, [](const RankFacts& f) { return f.late_gather_ns; }),
       {{"late", Percent{100 * late / gathers}}, {"gathers", std::uint64_t(std::llround(gathers))}},
       found);
}

// Copies that make the program wait for the device in the middle of a step, again and again.
void blocking_copies(const Evidence& e, Findings& found) {
  const auto look = [&](Kind kind, Blocking RankFacts::*which) {
    const double calls = of_a_step(e, [&](const RankFacts& f) { return (f.*which).calls; });
    if (calls < 1.5) return;
    const double bytes = of_a_step(e, [&](const RankFacts& f) { return (f.*which).bytes; });
    tell(e, kind, of_a_step(e, [&](const RankFacts& f) { return (f.*which).idle_ns; }),
         {{"calls", std::uint64_t(std::llround(calls))},
          {"bytes", Bytes{static_cast<std::uint64_t>(std::llround(bytes / calls))}}},
         found);
  };
  look(Kind::blocking_h2d, &RankFacts::to_device);
  look(Kind::blocking_d2h, &RankFacts::to_host);
}

// Weights that are gathered again in the backward pass, and gradients that are reduced in each
// micro-batch: less memory and more communication, as far as that is not hidden.
void done_again(const Evidence& e, Findings& found) {
  const auto exposed = [](Bucket b) {
    return [b](const RankFacts& f) { return f.backward_exposed_ns[static_cast<std::size_t>(b)]; };
  };
  tell(e, Kind::gathered_again, of_a_step(e, exposed(Bucket::ALLGATHER)), {}, found);
  const double passes = of_a_step(e, [](const RankFacts& f) { return f.backward_passes; });
  if (passes < 1.5) return;
  const std::optional<Bucket> by = reduces_by(*e.times.ranks.front());
  if (!by) return;
  const double reduced = of_a_step(e, exposed(*by));
  tell(e, Kind::reduced_again, reduced * (passes - 1) / passes,
       {{"passes", std::uint64_t(std::llround(passes))}}, found);
}

// Weights and gradients that are sent as float32: as bfloat16 they were half.
void wide_dtype(const Evidence& e, Findings& found) {
  constexpr Bucket kTensors[] = {Bucket::ALLGATHER, Bucket::RESHARDING, Bucket::ALLREDUCE};
  std::uint64_t wide = 0;
  std::uint64_t all = 0;
  for (const read::Row& row : read::rows_of(*e.times.ranks.front())) {
    if (std::ranges::find(kTensors, row.bucket) == std::end(kTensors)) continue;
    all += row.amounts.bytes;
    if (std::string_view(row.dtype) == "float32") wide += row.amounts.bytes;
  }
  if (all == 0 || wide * 10 < all * 9) return;
  const double exposed = of_a_step(e, [&](const RankFacts& f) {
    std::int64_t ns = 0;
    for (const Bucket b : kTensors) ns += f.exposed_ns[static_cast<std::size_t>(b)];
    return ns;
  });
  tell(e, Kind::wide_dtype, exposed / 2, {}, found);
}

}  // namespace tprof::why
