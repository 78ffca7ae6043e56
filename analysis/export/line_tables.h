// Writes the tables of what has a line of its own: calls with their device times, NVTX ranges,
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "export/exported.h"
#include "export/tables.h"
#include "stats/started_ranges.h"
#include "stats/timed_calls.h"

namespace tprof::trace_export {

class LineTables {
 public:
  LineTables(const Exported& of, TableWriter& to) : of_(of), to_(to) {}

  // Needs memory that does not grow with the trace's lines. Throws BadInput for a line that can't
  // be read.
  void write(const read::Trace& trace);

 private:
  static constexpr std::size_t kMostThreads = 65536;

  // The state of a rank whose lines are being read.
  struct Rank {
    stats::TimedCalls calls;
    stats::StartedRanges started{};
    std::set<std::int64_t> threads{};
  };
  Rank& rank_of(const read::Process& process);
  void call(const read::Process& process, const read::Event& e, const read::DeviceTime* t);
  void range(const read::Process& process, const read::Range& r);
  void put(const read::Process& process, const read::Range& r,
           const std::optional<std::int64_t>& from_ns, const std::optional<std::int64_t>& to_ns);

  const Exported& of_;
  TableWriter& to_;
  std::map<const read::Process*, Rank> ranks_;
};

}  // namespace tprof::trace_export
