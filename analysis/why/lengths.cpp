#include "why/lengths.h"

#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

constexpr std::size_t kMostWarmingUp = 10;

// The mean over the hosts that keep pace: a host that runs ahead says nothing.
double by_hosts(const Times& times, std::size_t step) {
  double sum = 0;
  std::size_t hosts = 0;
  for (std::size_t r = 0; r < times.ranks.size(); ++r) {
    if (!times.tells_pace(r)) continue;
    sum += times.of(r)[step].length;
    ++hosts;
  }
  return hosts == 0 ? 0 : sum / static_cast<double>(hosts);
}

}  // namespace

void Lengths::find_usual() {
  usual = median(ns);
  width = why::width(ns);
}

void Lengths::shorten(std::size_t from, double by_ns) {
  for (std::size_t i = from; i < ns.size(); ++i) ns[i] -= by_ns;
  find_usual();
}

std::size_t Lengths::warming_up() const {
  std::size_t n = 0;
  while (n < ns.size() && far_longer(n)) ++n;
  const double later = n == ns.size() ? 0 : *std::max_element(ns.begin() + n, ns.end());
  while (n != 0 && ns[n - 1] - later < far() - usual) --n;
  return n > kMostWarmingUp ? 0 : n;
}

Lengths lengths_of(const Evidence& e, bool mended) {
  Lengths all;
  for (const std::size_t s : e.steps) {
    all.ns.push_back(e.times.known() ? e.times.length(s) : by_hosts(e.times, s));
  }
  if (mended && e.replays != nullptr) {
    for (const auto& [place, ns] : e.replays->mended_ns()) all.ns[place] = ns;
  }
  all.find_usual();
  return all;
}

}  // namespace tprof::why
