// How the durations of one operation, or of the NVTX ranges of one name, are spread out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/passes.h"
#include "stats/samples.h"
#include "stats/steps.h"

namespace tprof::stats {

struct HistogramOptions {
  std::string name;  // of a bucket, a function or a range
  std::size_t bins = 20;
};

struct Histogram {
  enum class Kind { bucket, function, range };
  // The widest durations are so much longer than the shortest: the bins' widths grow with them.
  static constexpr std::uint64_t kLogFrom = 10;

  std::string name;
  Kind kind = Kind::function;
  bool on_device = false;    // the times are the device's; else the host's
  bool of_counts = false;    // of scopes, more than have lines: the bins are the ledger's, and how
                             // they are spread out is not known
  std::uint64_t looked = 0;  // of calls: those that have a line
  std::uint64_t shared = 0;  // of the samples: a group's calls have their share of its time
  bool log_scaled = false;
  // One more than there are bins: a bin is from one to below the next, the last one's end in it.
  std::vector<std::uint64_t> edges_ns;
  Samples all;
  std::map<std::optional<std::int64_t>, Samples> ranks;  // nothing: their rank is not known

  std::size_t rank_count() const { return ranks.size() - ranks.count(std::nullopt); }
};

// Of calls that were executed when called and have a line, by the device's time where any has one;
// in these steps, where any are asked for. From the lines of the next two passes, until which
// `found` stays where it is. Throws BadInput where nothing has that name, and for a line that can't
// be read.
void want_histogram(collect::Passes& passes, const HistogramOptions& options,
                    const steps::Found& found, const std::optional<StepRange>& only,
                    std::optional<Histogram>& to);

// From the shortest to the longest; at most so many bins, since an edge is a whole nanosecond.
std::vector<std::uint64_t> edges(std::uint64_t min_ns, std::uint64_t max_ns, std::size_t bins,
                                 bool log_scaled);

}  // namespace tprof::stats
