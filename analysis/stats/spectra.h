// How long the calls of each operation took, in bins that are the same for all: one pass is enough.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "interpose/format/buckets.h"
#include "run/known.h"
#include "run/lines.h"

namespace tprof::stats {

// Four bins for each doubling, from 64 ns to 19 minutes; the first and the last have the rest.
struct Spectrum {
  static constexpr int kPerDoubling = 4;
  static constexpr int kFirstDoubling = 6;
  static constexpr std::size_t kBins = std::size_t{34} * kPerDoubling;
  static std::size_t bin_of(std::uint64_t ns);
  static std::uint64_t edge_ns(std::size_t bin);  // where it begins

  std::array<std::uint64_t, kBins> counts{};
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;

  void add(std::uint64_t ns, std::uint64_t n);
  void add(const Spectrum& more);
};

struct OperationSize {
  Bucket bucket = Bucket::ALLGATHER;
  text::Kept name{};
  std::int64_t bytes_class = -1;

  std::uint64_t hash() const {
    return run::hash_of(static_cast<std::int64_t>(bucket), name, bytes_class);
  }
  auto operator<=>(const OperationSize&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CallSpectra {
  Spectrum host;
  Spectrum device;  // calls that were timed together have a share each
};
using Spectra = std::map<OperationSize, CallSpectra>;

// Covers calls that were executed when called and have a line.
Spectra spectra_of(const run::Lines& lines);

}  // namespace tprof::stats
