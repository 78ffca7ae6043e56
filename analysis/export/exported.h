// The input of an export: the ranks of a job, on one axis of time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "export/line_editor.h"
#include "job/jobs.h"
#include "steps/found.h"

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
};

}  // namespace tprof::trace_export
