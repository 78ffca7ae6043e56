#include "tables/op_times.h"

#include "tables/groups.h"

namespace tprof::tables {

static Spread& spread_of(RankedSpread& of) {
  return of.time;
}
static Spectrum& spread_of(Spectrum& of) {
  return of;
}

template <typename T>
static void add(Timed<T>& to, const read::Event& e, const read::DeviceTime* t) {
  spread_of(to.host).add_shares(read::not_below_0(e.dur_ns), 1);
  if (t != nullptr) spread_of(to.device).add_shares(read::not_below_0(t->dur_ns), t->calls);
}

void RankedSpread::add(const RankedSpread& other) {
  time.add(other.time);
  ranks.insert(other.ranks.begin(), other.ranks.end());
}

OpTimes op_times(const run::Lines& lines) {
  OpTimes all;
  const auto operation = [](const read::Process& rank) {
    return [&rank](const read::Event& e) { return std::optional(op_of(e, rank)); };
  };
  each_group<OpTime>(lines, operation, [&](const auto& rank, const OpKey& key, OpTime& times) {
    for (RankedSpread* spread : {&times.host, &times.device}) {
      if (rank.header.rank && spread->time.count != 0) spread->ranks.insert(*rank.header.rank);
    }
    all[key].host.add(times.host);
    all[key].device.add(times.device);
  });
  return all;
}

void Spectrum::add_shares(std::uint64_t ns, std::uint64_t n) {
  if (n == 0) return;
  counts[bin_of(ns / n)] += n;
  calls += n;
  total_ns = read::saturated_sum(total_ns, ns);
}

void Spectrum::add(const Spectrum& more) {
  for (std::size_t i = 0; i < kBins && more.calls != 0; ++i) counts[i] += more.counts[i];
  calls += more.calls;
  total_ns = read::saturated_sum(total_ns, more.total_ns);
}

Spectra spectra_of(const run::Lines& lines) {
  Spectra all;
  const auto operation = [](const read::Process& /*the same on all*/) {
    return [](const read::Event& e) {
      return std::optional<OpKey>({e.bucket, e.name, {}, {}, 0, tprof::bytes_class(e.bytes)});
    };
  };
  each_group<CallSpectra>(lines, operation, [&](auto&, const auto& key, const CallSpectra& more) {
    all[key].host.add(more.host);
    all[key].device.add(more.device);
  });
  return all;
}

}  // namespace tprof::tables
