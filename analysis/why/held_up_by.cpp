// Tells for which rank the others wait in one step that takes long. In several steps
// slow_at_times.cpp finds it.
#include "why/slow_ranks.h"

namespace tprof::why {
namespace {

// The rank that has most of a step, and how much more than the next one.
struct First {
  std::size_t rank = 0;
  double more = 0;
};
template <typename F>
First first_of(std::size_t ranks, F&& of) {
  First first;
  double most = of(0);
  double next = 0;
  for (std::size_t r = 1; r < ranks; ++r) {
    const double ns = of(r);
    next = std::max(next, std::min(ns, most));
    if (ns > most) first.rank = r, most = ns;
  }
  first.more = most - next;
  return first;
}

}  // namespace

std::optional<std::size_t> rank_that_holds_up(const Evidence& e, std::size_t step, double ns) {
  const std::size_t ranks = e.times.ranks.size();
  if (!e.times.known() || ranks < 2) return std::nullopt;
  const First slowest =
      first_of(ranks, [&](std::size_t r) { return e.times.own(r, e.steps[step]); });
  return 2 * slowest.more >= ns ? std::optional(slowest.rank) : std::nullopt;
}

void tell_where_it_holds_up(const Evidence& e, std::size_t rank, std::size_t step,
                            diagnose::Finding& f) {
  const Grid host = part_of_own(e, Part::host);
  const auto idle = first_of(host.ranks(), [&](std::size_t r) { return host.at(r, step); });
  const auto own =
      first_of(host.ranks(), [&](std::size_t r) { return e.times.own(r, e.steps[step]); });
  if (idle.rank != rank || 2 * idle.more < own.more) return;
  set(f.text, {"host_of_rank", true});
  tell_place(e, {.slow = {rank}, .part = Part::host, .steps = {step}}, f);
}

}  // namespace tprof::why
