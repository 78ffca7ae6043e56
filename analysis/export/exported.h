// The input of an export: the ranks of a job, on one axis of time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "export/placement.h"
#include "job/jobs.h"

namespace tprof::trace_export {

struct Exported {
  struct Rank {
    std::int64_t number = 0;  // `process` in the tables
    Placement at;
  };

  const job::Job& job;
  const steps::Found& found;
  std::int64_t base_time_ns = 0;  // CLOCK_REALTIME at ts 0
  std::string clocks{};           // a sentence on how hosts got on one axis; empty: one host
  std::map<const read::Process*, Rank> ranks{};
  const filter::Selection* asked = nullptr;  // null: all calls

  bool has_step(std::int64_t step) const {
    return asked == nullptr || !asked->filter().steps || asked->filter().steps->holds(step);
  }
  // NVTX ranges are no calls: of the filters, only ranks and steps are of them too.
  bool has_range(const read::Process& p, std::int64_t ts_ns) const {
    if (asked == nullptr) return true;
    const filter::Filter& f = asked->filter();
    return f.ops.empty() && f.sizes.empty() && f.comms.empty() && f.phases.empty() &&
           stats::in_steps(f.steps, found, p, ts_ns);
  }
};

}  // namespace tprof::trace_export
