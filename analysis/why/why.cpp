#include "why/why.h"

#include <cmath>
#include <numeric>

#include "stats/roles.h"
#include "why/causes.h"

namespace tprof::why {
namespace {

// The mean over ranks and steps.
double unmet_ns(std::span<const RankFacts> ranks) {
  double sum = 0;
  std::uint64_t steps = 0;
  for (const RankFacts& rank : ranks) {
    sum += static_cast<double>(rank.unmet_ns);
    steps += rank.steps;
  }
  return steps == 0 ? 0 : sum / static_cast<double>(steps);
}

void find_causes(const job::Job& job, Why& why) {
  const std::vector<std::size_t> steps = why.times->counted();
  if (steps.empty()) return;
  why.mean = mean_of(*why.times);
  why.unmet_ns = unmet_ns(why.times->facts);
  const auto roles = stats::sure_roles(job);
  const Evidence e{.job = job,
                   .times = *why.times,
                   .steps = steps,
                   .transfers = why.transfers,
                   .waits = why.waits,
                   .roles = roles,
                   .step_ns = why.mean.length};
  constexpr Cause kAll[] = {
#define X(name) name,
      TPROF_CAUSES(X)
#undef X
  };
  for (const Cause cause : kAll) {
    if (why.times->known() || cause == step_series) cause(e, why.findings);
  }
}

}  // namespace

std::vector<std::size_t> every_step(const Evidence& e) {
  std::vector<std::size_t> all(e.steps.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::string numbers_of(const Evidence& e, const std::vector<std::size_t>& places) {
  std::vector<std::int64_t> numbers;
  for (const std::size_t i : places) numbers.push_back(e.times.steps[e.steps[i]]);
  return text::Ranks(std::move(numbers)).str();
}

diagnose::Cost cost_of(const Evidence& of, double ns, double doubt_ns) {
  const auto steps = static_cast<double>(of.times.steps.size());
  return {.ns = std::llround(ns * steps),
          .doubt_ns = std::llround(doubt_ns * steps),
          .share = ns / of.step_ns,
          .ns_per_step = std::llround(ns)};
}

double exposed_ns(const Evidence& e, const text::Ranks& ranks, Bucket bucket) {
  double exposed = 0;
  double n = 0;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const auto& rank = e.times.ranks[r]->header.rank;
    const RankFacts& facts = e.times.facts[r];
    if (!rank || !ranks.contains(*rank) || facts.steps == 0) continue;
    exposed += static_cast<double>(facts.exposed[static_cast<std::size_t>(bucket)].ns) /
               static_cast<double>(facts.steps);
    ++n;
  }
  return n == 0 ? 0 : exposed / n;
}

void want(collect::Passes& passes, const steps::Found& found, Why& to) {
  want_transfers(passes, to.transfers);
  passes.then([&] {
    want_times(passes, found, to.transfers.last_came.get(), to.times);
    want_wait_table(passes, found, to.transfers, to.peak, to.waits);
    passes.want([](const read::Process&, collect::Collectors&) {}, [](const collect::Lines&) {});
    passes.then([&] { find_causes(passes.job(), to); });
  });
}

}  // namespace tprof::why
