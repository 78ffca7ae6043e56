// The steps of a job: one answer for all its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "read/told_lines.h"
#include "run/lines.h"

namespace tprof::steps {

enum class How { none, mark, period };

// The time from where a rank began the step to where it began the next.
struct Interval {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t epoch = 0;  // how often the program's step numbers had restarted
  // False if the end is just the rank's last call: it may have waited longer.
  bool end_known = true;
};

struct Found {
  How how = How::none;
  // True if each is a whole step. Otherwise each may be a step or a micro-batch.
  bool whole_steps = false;
  // True if the steps are those of the tprof_step lines, with exact counts. Otherwise they were
  // found in the event lines.
  bool exact = false;
  // True if the program's step numbers restart and were renumbered.
  bool counted_on = false;
  std::vector<std::int64_t> steps{};  // ascending: the marks' numbers, or from 1
  std::map<const read::Process*, std::vector<Interval>> ranks{};
  std::map<const read::Process*, std::vector<read::StepLine>>
      lines{};  // of each interval, if `exact`
  // Sentences without a full stop: why there are no steps, or what is not known about them.
  std::string why{};
  std::vector<std::string> unknown{};
  std::string without{};  // which ranks have no steps, and why; empty: all have steps
};

// Returns the interval that contains a moment; null if there is none.
const Interval* interval_at(std::span<const Interval> ascending, std::int64_t ts_ns);

// Returns the step in which a rank called; null if none is known.
const Interval* interval_of(const Found& found, const read::Process* rank, std::int64_t ts_ns);
// Returns the number of that step.
std::optional<std::int64_t> step_at(const Found& found, const read::Process* rank,
                                    std::int64_t ts_ns);

Found find(const run::Lines& lines);

// Finds hosts that keep the pace of the job, and whether they may run ahead.

// All ranks of a job take the same time for a step, but a host may enqueue many steps ahead of its
// device; without device times its steps then say nothing. Returns the ranks whose hosts take about
// as long as the slowest host. The longest step is ignored, since one rank may pause alone.
std::set<const read::Process*> in_pace(const Found& found);

// A host runs ahead of its device until it reads a value: then one step takes the time of many.
// Returns true if some rank has steps in which it reads no value.
bool may_run_ahead(const Found& found);

}  // namespace tprof::steps
