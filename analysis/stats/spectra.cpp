#include "stats/spectra.h"

#include <algorithm>

#include "stats/spread.h"
#include "stats/timed_calls.h"

namespace tprof::stats {
namespace {

OperationSize operation_of(const read::Event& e) {
  return {e.bucket, e.name, tprof::bytes_class(e.bytes)};
}

bool any_timed(const read::Process& rank) {
  return std::ranges::any_of(read::rows_of(rank),
                             [](const read::Row& row) { return row.amounts.device_timed != 0; });
}

struct RankSpectra {
  explicit RankSpectra(const read::Process& rank) : timed(any_timed(rank)) {}

  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    mine[operation_of(e)].host.add(not_below_0(e.dur_ns), 1);
    if (timed) calls.call(e);
  }
  void device_time(const read::DeviceTime& t) {
    if (timed) calls.time(t);
  }
  void end() {
    calls.finish();
    found = mine.take();
  }

  bool timed;
  run::Known<OperationSize, CallSpectra> mine;
  Spectra found;
  TimedCalls calls{[this](const read::Event& e, const read::DeviceTime* t) {
    if (t == nullptr || t->calls == 0) return;
    mine[operation_of(e)].device.add(not_below_0(t->dur_ns) / t->calls, t->calls);
  }};
};

}  // namespace

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
  lines.each([](const read::Process& rank) { return RankSpectra(rank); },
             [&](const RankSpectra& rank) {
               for (const auto& [key, spectra] : rank.found) {
                 all[key].host.add(spectra.host);
                 all[key].device.add(spectra.device);
               }
             });
  return all;
}

}  // namespace tprof::stats
