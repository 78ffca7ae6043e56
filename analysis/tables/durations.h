// The spread of durations around their mean.
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

// Adds durations one by one to count, sum, mean and spread (Welford's method, which loses no
// digits).
class Spread {
 public:
  void add(std::uint64_t ns) { add_shares(ns, 1); }
  // Adds calls that took `ns` together, each with its share.
  void add_shares(std::uint64_t ns, std::uint64_t calls);
  void add(const Spread& other);
  // Sets the sums only: the shortest duration and the spread are then not known.
  void set_sums(std::uint64_t n, std::uint64_t sum_ns, std::uint64_t longest_ns);

  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  double mean_ns = 0;
  double std_ns() const;  // of all of them, not of a sample

 private:
  double squares_ = 0;  // of the distances to the mean
};

// How long the calls of each operation took, by their lines: the ledger has sums and maxima only.

// Times of calls, in a T for the hosts' and one for the devices': there calls that were timed
// together have a share each.
template <typename T>
struct Timed {
  T host;
  T device;

  void add(const Timed& more) {
    host.add(more.host);
    device.add(more.device);
  }
};

// Durations, and the ranks that have any.
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

// The distribution of the durations of one operation, or of the NVTX ranges of one name.

struct HistogramOptions {
  std::string name;  // of a bucket, a function or a range
  std::size_t bins = 20;
};

// Durations, and how many of them are in each bin.
struct Samples {
  // Adds calls that took `ns` together, each with its share. `edges_ns` are the edges of the bins;
  // empty: not known yet.
  void add(std::uint64_t ns, std::uint64_t calls, const std::vector<std::uint64_t>& edges_ns);
  void add(const Samples& more);  // with the same bins

  Spread time;
  std::vector<std::uint64_t> bins;
};

struct Histogram {
  enum class Kind { bucket, function, range };
  // If the longest duration is at least this many times the shortest, the bins' widths grow with
  // it.
  static constexpr std::uint64_t kLogFrom = 10;

  std::string name{};
  Kind kind = Kind::function;
  bool on_device = false;    // the times are the device's; else the host's
  bool of_counts = false;    // of scopes, some without lines: the bins are the ledger's, and the
                             // spread of the durations is not known
  std::uint64_t looked = 0;  // calls that have a line
  std::uint64_t shared = 0;  // samples from groups: each call has its share of the group's time
  bool log_scaled = false;
  // One more than there are bins. A bin goes from its edge to below the next; the last includes its
  // end.
  std::vector<std::uint64_t> edges_ns{};
  Samples all{};
  std::map<std::optional<std::int64_t>, Samples> ranks{};  // nullopt: the rank is not known

  std::size_t rank_count() const { return ranks.size() - ranks.count(std::nullopt); }
};

// Covers calls that were executed when called and have a line, in the steps asked for. Uses the
// device's times if any call has one. Throws BadInput if nothing has that name, and for a line that
// can't be read.
Histogram histogram_of(const run::Lines& lines, const HistogramOptions& options,
                       const steps::Found& found, const std::optional<StepList>& only);

// Edges from the shortest to the longest duration. There may be fewer bins than asked for, since an
// edge is a whole nanosecond.
std::vector<std::uint64_t> edges(std::uint64_t min_ns, std::uint64_t max_ns, std::size_t bins,
                                 bool log_scaled);

// The single calls that took longest.

struct SlowCall {
  const read::Process* rank = nullptr;
  std::int64_t time_ns = 0;
  read::Event line{};                    // of a group, the first call's
  std::optional<std::int64_t> step{};    // in which it called
  std::uint64_t calls = 1;               // more than 1: a group that has one time
  std::optional<std::uint64_t> bytes{};  // of all of them; nullopt: not all have a line
};

struct Slowest {
  bool on_device = false;    // the times are the device's; else the host's
  std::uint64_t looked = 0;  // calls that have such a time
  // The longest first. A collective is listed once, for the rank on which it took longest.
  std::vector<SlowCall> calls;
};

// Finds the `most` slowest calls that have a line. Uses the device's times if any call has one,
// else the host's. Leaves out files that can't be read.
Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found);

}  // namespace tprof::tables
