#include "stats/spectra.h"

#include <algorithm>

#include "stats/groups.h"
#include "stats/spread.h"

namespace tprof::stats {
static void add(CallSpectra& to, const read::Event& e, const read::DeviceTime* t) {
  to.host.add(not_below_0(e.dur_ns), 1);
  if (t != nullptr && t->calls != 0) {
    to.device.add(not_below_0(t->dur_ns) / t->calls, t->calls);
  }
}

std::size_t Spectrum::bin_of(std::uint64_t ns) {
  if (ns < std::uint64_t{1} << kFirstDoubling) return 0;
  const int doubling = std::bit_width(ns) - 1;
  const auto quarter =
      static_cast<int>((ns >> (doubling - 2)) & 3);  // the two bits below the first
  const int bin = (doubling - kFirstDoubling) * kPerDoubling + quarter;
  return std::min(static_cast<std::size_t>(bin), kBins - 1);
}

std::uint64_t Spectrum::edge_ns(std::size_t bin) {
  const std::size_t doubling = kFirstDoubling + bin / kPerDoubling;
  return (4 + bin % kPerDoubling) << (doubling - 2);
}

void Spectrum::add(std::uint64_t ns, std::uint64_t n) {
  counts[bin_of(ns)] += n;
  calls += n;
  total_ns = read::saturated_sum(total_ns, ns * n);
}

void Spectrum::add(const Spectrum& more) {
  if (more.calls == 0) return;
  for (std::size_t i = 0; i < kBins; ++i) counts[i] += more.counts[i];
  calls += more.calls;
  total_ns = read::saturated_sum(total_ns, more.total_ns);
}

Spectra spectra_of(const run::Lines& lines) {
  Spectra all;
  const auto operation = [](const read::Process& /*the same on all*/) {
    return [](const read::Event& e) {
      return std::optional<OperationSize>({e.bucket, e.name, tprof::bytes_class(e.bytes)});
    };
  };
  each_group<CallSpectra>(lines, operation, [&](auto&, const auto& key, const CallSpectra& more) {
    all[key].host.add(more.host);
    all[key].device.add(more.device);
  });
  return all;
}

}  // namespace tprof::stats
