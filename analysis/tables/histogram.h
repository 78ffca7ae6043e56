// The distribution of the durations of one operation, or of the NVTX ranges of one name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/lines.h"
#include "tables/spread.h"
#include "tables/steps.h"

namespace tprof::tables {

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

}  // namespace tprof::tables
