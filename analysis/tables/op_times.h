// How long the calls of each operation took, by their lines: the ledger has sums and maxima only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "interpose/format/scopes.h"
#include "run/lines.h"
#include "tables/spread.h"
#include "tables/totals.h"

namespace tprof::tables {

// Times of calls, in a T for the hosts' and one for the devices': there calls that were timed
// together have a share each.
template <typename T>
struct Timed {
  T host;
  T device;
};

// Durations, and the ranks that have any.
struct RankedSpread {
  Spread time;
  std::set<std::int64_t> ranks;

  void add(const RankedSpread& other);
};

struct OpTime : Timed<RankedSpread> {
  bool on_device() const { return device.time.count != 0; }
  const RankedSpread& best() const { return on_device() ? device : host; }
};

using OpTimes = std::map<OpKey, OpTime>;

// Covers calls that were executed when called and have a line. Leaves out files that can't be read.
OpTimes op_times(const run::Lines& lines);

// Durations in bins that are the same for all: four for each doubling, from 64 ns to 19 minutes;
// the first and the last have the rest.
struct Spectrum {
  static constexpr std::size_t kBins = 136;
  static constexpr std::size_t kFirst = scope_bin(64);
  static std::size_t bin_of(std::uint64_t ns) {
    return std::clamp<std::size_t>(scope_bin(ns), kFirst, kFirst + kBins - 1) - kFirst;
  }
  // Returns where it begins.
  static std::uint64_t edge_ns(std::size_t bin) {
    return scope_bin_from(static_cast<unsigned>(bin + kFirst));
  }

  std::array<std::uint64_t, kBins> counts{};
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;

  void add_shares(std::uint64_t ns, std::uint64_t n);  // of calls that took `ns` together
  void add(const Spectrum& more);
};

using CallSpectra = Timed<Spectrum>;
using Spectra = std::map<OpKey, CallSpectra>;

// Covers the same calls, by function and size.
Spectra spectra_of(const run::Lines& lines);

}  // namespace tprof::tables
