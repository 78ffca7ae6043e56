#include "stats/samples.h"

#include <algorithm>

namespace tprof::stats {

void Samples::add(std::uint64_t ns, std::uint64_t calls,
                  const std::vector<std::uint64_t>& edges_ns) {
  time.add_shares(ns, calls);
  if (edges_ns.empty() || calls == 0) return;
  bins.resize(edges_ns.size() - 1);
  const auto next = std::upper_bound(edges_ns.begin() + 1, edges_ns.end() - 1, ns / calls);
  bins[static_cast<std::size_t>(next - edges_ns.begin()) - 1] += calls;
}

void Samples::add(const Samples& more) {
  time.add(more.time);
  bins.resize(std::max(bins.size(), more.bins.size()));
  for (std::size_t i = 0; i < more.bins.size(); ++i) bins[i] += more.bins[i];
}

}  // namespace tprof::stats
