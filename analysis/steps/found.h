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

// The time from where a rank began the step to where it began the next, by its lines.
struct Interval {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t epoch = 0;  // how often the program's numbers had begun again
  // False if it is only known that the rank called nothing any more: it may have waited on.
  bool end_known = true;
};

struct Found {
  How how = How::none;
  // True if each is a whole step. Otherwise the program does not tell whether it is a step, or one
  // of its micro-batches.
  bool whole_steps = false;
  // True if the ranks' own writers said what the steps were, with their exact counts. Otherwise the
  // steps are those of the event lines.
  bool exact = false;
  // True if the program's numbers begin again: they are counted on from there.
  bool counted_on = false;
  std::vector<std::int64_t> steps{};  // their numbers, ascending: the mark's, or from 1
  std::map<const read::Process*, std::vector<Interval>> ranks{};
  std::map<const read::Process*, std::vector<read::StepLine>>
      lines{};  // of each interval, if `exact`
  // Sentences without their full stop: why there are no steps, or what is not known of them.
  std::string why{};
  std::vector<std::string> unknown{};
  std::string without{};  // of these, which ranks have no steps, and why; empty: all have
};

// Returns the interval in which a moment of its rank lies; null if there is none.
const Interval* interval_at(std::span<const Interval> ascending, std::int64_t ts_ns);

// Returns the step in which a rank called; null if none is known.
const Interval* interval_of(const Found& found, const read::Process* rank, std::int64_t ts_ns);
// Returns its number.
std::optional<std::int64_t> step_at(const Found& found, const read::Process* rank,
                                    std::int64_t ts_ns);

Found find(const run::Lines& lines);

// Finds the hosts that go as fast as the job, and whether they may go faster.

// All ranks of a job make a step in the same time, but a host may enqueue many of them ahead of its
// device: where devices were not timed, its steps say nothing. Returns the ranks whose hosts take
// about as long as the slowest. Their longest step does not count: one rank may pause alone.
std::set<const read::Process*> in_pace(const Found& found);

// A host runs ahead of its device until it waits for it: then one step has the time of many. It
// waits where it reads a value. Returns true if some rank reads none in some of its steps, so that
// its host may run ahead in them.
bool may_run_ahead(const Found& found);

}  // namespace tprof::steps
