// Reads the lines of a job before they are merged, for what viewers get besides them: arrows
// between ranks, sizes of what ran on devices, lanes of steps and of exposed communication, rates.
#pragma once

#include <map>
#include <vector>

#include "export/merge_plan.h"
#include "export/rank_timeline.h"
#include "filter/selection.h"

namespace tprof::trace_export {

class Timeline {
 public:
  // From the lines of these processes. Files that can't be read are left out.
  Timeline(const std::vector<const read::Process*>& processes, const filter::Selection& asked,
           bool arrows);

  // Finds out in which order ranks came, and how long it is. Has to be called before the lines are
  // written.
  void place(const Members& members);

  std::int64_t next_arrow() const { return next_arrow_; }  // an id that no arrow has
  const steps::Found& found() const { return found_; }
  const RankTimeline* of(const read::Process& process) const;  // null: none
  std::int64_t window_ns() const { return window_ns_; }        // of rates

  // Writes the lines of a process's own lanes, each with a line break before it.
  void write_lanes(const Member& member, Pen& out) const;

 private:
  std::vector<const read::Process*> processes_;
  Meets meets_;
  std::int64_t next_arrow_ = 0;
  Reading reading_;
  std::int64_t window_ns_ = 1;
  const filter::Filter& only_;
  steps::Found found_;
  std::map<const read::Process*, RankTimeline> ranks_;
};

// The shortest of 1, 2, 5, 10… ms of which at most 1,000 are as long as this.
std::int64_t window_of(std::int64_t length_ns);

}  // namespace tprof::trace_export
