// Reads the lines of a job before they are merged, for what viewers get besides them: arrows
// between ranks, sizes of what ran on devices, lanes of steps and of exposed communication, rates.
#pragma once

#include <map>
#include <vector>

#include "export/pen.h"
#include "export/rank_timeline.h"

namespace tprof::trace_export {

class Timeline {
 public:
  // From the lines of these processes, which all go somewhere.
  Timeline(const Members& members, const filter::Selection& asked, bool arrows);

  std::int64_t next_arrow() const { return next_arrow_; }  // an id that no arrow has
  const steps::Found& found() const { return found_; }
  const RankTimeline* of(const read::Process& process) const;  // null: none

  // Writes the lines of a process's own lanes, each with a line break before it.
  void write_lanes(const Member& member, Pen& out) const;

 private:
  void find_turns();

  Reading reading_;
  const filter::Filter& only_;
  steps::Found found_;
  std::vector<const read::Process*> processes_;
  std::map<const read::Process*, RankTimeline> ranks_;
  std::int64_t next_arrow_ = 0;
};

// The shortest of 1, 2, 5, 10… ms of which at most 1,000 are as long as this.
std::int64_t window_of(std::int64_t length_ns);

}  // namespace tprof::trace_export
