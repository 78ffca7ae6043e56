// The distribution of durations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interpose/format/scopes.h"
#include "read/events.h"
#include "run/lines.h"
#include "steps/found.h"
#include "tables/steps.h"
#include "tables/totals.h"

namespace tprof::tables {

// Accumulates count, sum, mean and standard deviation (Welford's method, which loses no digits).
class Spread {
 public:
  void add(std::uint64_t ns) { add_shares(ns, 1); }
  // Adds several calls that took `ns` together, with equal shares.
  void add_shares(std::uint64_t ns, std::uint64_t calls);
  void add(const Spread& other);
  // Sets the sums only; the shortest duration and the deviation are then unknown.
  void set_sums(std::uint64_t n, std::uint64_t sum_ns, std::uint64_t longest_ns);

  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  double mean_ns = 0;
  double std_ns() const;  // of the population, not of a sample

 private:
  double squares_ = 0;  // of the distances to the mean
};

// How long the calls of each operation took, from their lines: the ledger has only sums and maxima.

// Times of calls on hosts and on devices, where calls that were timed together have equal shares.
template <typename T>
struct Timed {
  T host;
  T device;

  void add(const Timed& more) {
    host.add(more.host);
    device.add(more.device);
  }
};

// Durations, and the ranks with any.
struct RankedSpread : Spread {
  std::set<std::int64_t> ranks;

  void add(const RankedSpread& other) {
    Spread::add(other);
    ranks.insert(other.ranks.begin(), other.ranks.end());
  }
};

struct OpTime : Timed<RankedSpread> {
  bool on_device() const { return device.count != 0; }
  const RankedSpread& best() const { return on_device() ? device : host; }
};

using OpTimes = std::map<OpKey, OpTime>;

// Covers directly executed calls with a line. Leaves out files that can't be read.
OpTimes op_times(const run::Lines& lines);

// Durations in fixed bins: four per doubling, from 64 ns to 19 minutes; the first and last also
// have everything beyond.
struct Spectrum {
  static constexpr std::size_t kBins = 136;
  static constexpr std::size_t kFirst = scope_bin(64);
  static std::size_t bin_of(std::uint64_t ns) {
    return std::clamp<std::size_t>(scope_bin(ns), kFirst, kFirst + kBins - 1) - kFirst;
  }
  // Returns where a bin begins.
  static std::uint64_t edge_ns(std::size_t bin) {
    return scope_bin_from(static_cast<unsigned>(bin + kFirst));
  }

  std::array<std::uint64_t, kBins> counts{};
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;

  void add_shares(std::uint64_t ns, std::uint64_t n);  // n calls that took `ns` together
  void add(const Spectrum& more);
};

using CallSpectra = Timed<Spectrum>;
using Spectra = std::map<OpKey, CallSpectra>;

// Covers the same calls, by function and size.
Spectra spectra_of(const run::Lines& lines);

// A histogram of the durations of one operation, or of the NVTX ranges of one name.

struct HistogramOptions {
  std::string name;  // of a bucket, a function or a range
  std::size_t bins = 20;
};

// Durations, and how many of them are in each bin.
struct Samples {
  // Adds several calls that took `ns` together, with equal shares. `edges_ns`: the bins' edges;
  // empty: not known yet.
  void add(std::uint64_t ns, std::uint64_t calls, const std::vector<std::uint64_t>& edges_ns);
  void add(const Samples& more);  // with the same bins

  Spread time;
  std::vector<std::uint64_t> bins;
};

struct Histogram {
  enum class Kind { bucket, function, range };
  // If the longest duration is at least this many times the shortest, bins are logarithmic.
  static constexpr std::uint64_t kLogFrom = 10;

  std::string name{};
  Kind kind = Kind::function;
  bool on_device = false;    // device times; else host times
  bool of_counts = false;    // for scopes, some without lines: the bins are the ledger's, and the
                             // deviation is unknown
  std::uint64_t looked = 0;  // calls with a line
  std::uint64_t shared =
      0;  // samples from groups: each call has an equal share of the group's time
  bool log_scaled = false;
  // One more than bins. A bin goes from its edge to below the next; the last one includes its end.
  std::vector<std::uint64_t> edges_ns{};
  Samples all{};
  std::map<std::optional<std::int64_t>, Samples> ranks{};  // nullopt: unknown rank

  std::size_t rank_count() const { return ranks.size() - ranks.count(std::nullopt); }
};

// Covers directly executed calls with a line, in these steps. Uses device times if any call has
// one. Throws BadInput if nothing has that name, and for an unreadable line.
Histogram histogram_of(const run::Lines& lines, const HistogramOptions& options,
                       const steps::Found& found, const std::optional<StepList>& only);

// Returns edges from the shortest to the longest duration. There may be fewer bins than wanted,
// since edges are whole nanoseconds.
std::vector<std::uint64_t> edges(std::uint64_t min_ns, std::uint64_t max_ns, std::size_t bins,
                                 bool log_scaled);

// The slowest calls.

struct SlowCall {
  const read::Process* rank = nullptr;
  std::int64_t time_ns = 0;
  read::Event line{};                    // for a group: its first call
  std::optional<std::int64_t> step{};    // in which it was called
  std::uint64_t calls = 1;               // more than 1: a group with one time
  std::optional<std::uint64_t> bytes{};  // of all its calls; nullopt: some have no line
};

struct Slowest {
  bool on_device = false;    // device times; else host times
  std::uint64_t looked = 0;  // calls with such a time
  // Sorted, the longest first. A collective is listed once, for the rank on which it took longest.
  std::vector<SlowCall> calls;
};

// Finds the `most` slowest calls with a line, by device times if any call has one, else by host
// times. Leaves out files that can't be read.
Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found);

}  // namespace tprof::tables
