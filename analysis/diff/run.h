// The parts of a run that are compared: counts, from the ends of files, and steps, from the lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/finding.h"
#include "filter/selection.h"
#include "job/jobs.h"
#include "stats/steps.h"

namespace tprof::diff {

using stats::OpKind;

// Tells where the time of a step went on the devices, in nanoseconds: why/times.h, the mean over
// ranks. Their sum is its length.
struct Parts {
  double compute = 0;
  double unsure = 0;     // computing or idle
  double waiting = 0;    // exposed, while another rank was missing
  double transfers = 0;  // exposed, beside that
  double idle = 0;
};

struct Step : stats::StepCalls {
  std::int64_t number = 0;
  std::optional<Parts> parts{};  // absent: not known
};

struct Run {
  std::string path{};
  const job::Job* job = nullptr;
  std::map<OpKind, read::Amounts> totals{};                    // of the whole run, sums over ranks
  std::map<OpKind, std::set<const read::Process*>> callers{};  // who made these
  std::uint64_t ranks = 0;
  std::int64_t world = 0;  // what the size "world" is
  bool ended = true;       // no process was killed, and all ranks are here
  // Steps that all ranks made and have lines of, without the first: memory and connections are made
  // in it. Empty: none are known, or nobody looked.
  std::vector<Step> steps{};
  double unmet_share = 0;                   // of the waiting: it may be transfers
  std::uint64_t steps_seen = 0;             // with the others; 0: not known
  bool whole_steps = true;                  // false: each may be a micro-batch
  bool by_devices = false;                  // the devices tell how long steps are
  bool may_run_ahead = false;               // the hosts, of their devices
  std::string no_steps{};                   // why none are known: a sentence without its full stop
  std::vector<read::Skipped> unreadable{};  // files whose lines are left out
  // Those that tell of ranks that hold up the others. Nullopt: nobody knows, or only some calls
  // were asked for.
  std::optional<diagnose::Findings> slow_ranks{};
  filter::Words only{};              // which calls these are; empty: all
  std::vector<std::string> notes{};  // what is not exact for that
  bool of_some_calls() const {       // of a step
    return !(only.ops.empty() && only.sizes.empty() && only.comms.empty() && only.phases.empty());
  }
};

// Looks at the steps only if `with_lines`. `findings` are those of all that `asked` is of.
Run look_at(const filter::Selection& asked, const diagnose::Findings& findings,
            const std::string& path, bool with_lines);

}  // namespace tprof::diff
