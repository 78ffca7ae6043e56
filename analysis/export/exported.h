// The input of `tprof export`: the ranks of a job on one axis of time, and their lines as formats
// want them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "export/placement.h"
#include "run/lines.h"
#include "stats/timed_calls.h"

namespace tprof::trace_export {

struct Exported {
  struct Rank {
    std::int64_t number = 0;  // `process` in the tables
    Placement at;
  };

  const job::Job& job;     // the whole of it
  const run::Lines lines;  // calls that were asked for are marked
  const steps::Found& found;
  std::vector<const read::Process*> processes{};  // that are exported, by rank
  std::map<const read::Process*, Rank> ranks{};
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0
  std::string clocks{};           // a sentence on how hosts got on one axis; empty: one host
  const filter::Selection* asked = nullptr;  // null: all calls

  // NVTX ranges are no calls: of the filters, only ranks and steps are of them too.
  bool has_range(const read::Process& p, std::int64_t ts_ns) const {
    if (asked == nullptr) return true;
    const filter::Filter& f = asked->filter();
    return f.ops.empty() && f.sizes.empty() && f.comms.empty() && f.phases.empty() &&
           stats::in_steps(f.steps, found, p, ts_ns);
  }
};

// A format takes this of a rank's lines.
struct Sinks {
  // A call that was asked for, with its time on the device, or null.
  stats::TimedCalls::Sink call;
  // A range, and when it began and ended, as far as that is known.
  using Moment = std::optional<std::int64_t>;
  std::function<void(const read::Range&, Moment from_ns, Moment to_ns)> range;
  std::function<void(const read::ThreadName&)> thread{};  // may be called again for a thread
};
void show_lines(const Exported& of, const read::Process& rank, const Sinks& to);

// Files with a line that can't be read are no part of an output: takes out their processes, and
// names them in `skipped`. Throws BadInput if none is left.
void leave_out_unreadable(const run::Lines& lines, std::vector<const read::Process*>& processes,
                          std::vector<read::Skipped>& skipped);

}  // namespace tprof::trace_export
