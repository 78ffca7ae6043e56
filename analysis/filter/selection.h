// Applies a filter to a job: its ranks, the counts of its ledgers, and its calls.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "filter/filter.h"
#include "interpose/base/not_copied.h"
#include "job/jobs.h"
#include "run/lines.h"

namespace tprof::filter {

// with_lanes: also the other ranks of a process, which share its header and ledger.
enum class Comes { alone, with_lanes };

// Says which of the wanted ranks are in the job, if not all are.
std::optional<std::string> absent_of(const std::string& ranks, const job::Job& job);

// Returns the job with these ranks alone, none of them missing; the whole job for "". Throws
// BadInput with the existing ranks if none of these exists.
job::Job with_ranks(const job::Job& job, const std::string& ranks, Comes how = Comes::alone);

struct Needs {
  bool counts = true;         // rows of the chosen calls alone
  bool steps = false;         // set `found` even without --steps
  bool device_times = false;  // set Chosen::time, for readers that see only device times
  Comes ranks = Comes::alone;
  bool left_out = false;  // count the calls in lines that are not chosen
  bool any = true;        // refuse filters that no call passes
};

// The key that a row and the lines of its calls share, without the thread, which lines and steps do
// not always tell.
struct CallKey : read::RowKey {
  bool passes = true;

  std::uint64_t hash() const {
    return run::hash_of(bucket, name, dtype, comm.value_or(-1), bytes_class, device.value_or(-1),
                        host_memory, passes);
  }
  auto operator<=>(const CallKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
using Counted = std::map<CallKey, read::Amounts>;

// Ledgers have operations and communicators, and sizes if a row's calls are all on one side of a
// border. Steps come from the writers' counts or from lines, phases and other sizes from lines;
// notes() tell how many calls lack these. Code that judges the job uses all calls of its ranks,
// other code those chosen in lines().
class Selection : NotCopied {
 public:
  // `whole`: the lines of the whole job. Throws BadInput if the job lacks something.
  Selection(const run::Lines& whole, const Filter& filter, const Needs& needs);

  const job::Job& job() const { return job_; }  // of the chosen ranks
  const Words& words() const { return filter_.words; }
  const Filter& filter() const { return filter_; }
  const std::vector<std::string>& notes() const { return notes_; }  // sentences without a full stop
  // The steps of the whole job, for the chosen ranks; nullopt: not needed.
  const std::optional<steps::Found>& found() const { return found_; }
  run::Lines lines() const;  // refers to this object
  const Calls& calls() const { return calls_; }
  // Returns how many calls have a line, and how many of these are not chosen.
  std::pair<std::uint64_t, std::uint64_t> lines_of(const read::Process& rank) const;

 private:
  using CallsOfBuckets = std::map<Bucket, std::uint64_t>;

  void find_steps();
  void find_phases();
  bool filter_step_lines();
  void count(const Needs& needs);
  bool none_pass() const;
  // The writers' counts, with the lines' times on the device.
  Counted counted_in_steps(const read::Process& rank, const Counted& in_lines);
  bool moments() const { return filter_.steps || !filter_.phases.empty(); }
  std::optional<tables::StepPhase> phase_of(const read::Process& rank, const read::Row& row) const;
  Holds holds(const read::Process& rank, const read::Row& row) const;
  read::Rows filtered(const read::Process& rank, const Counted& counted, bool by_steps);
  void say(const CallsOfBuckets& calls, std::string_view where);

  run::Lines lines_;  // of the whole job
  Filter filter_;
  job::Job job_;
  Calls calls_;
  std::optional<steps::Found> found_;
  PhasesOfRanks phases_;
  std::map<const read::Process*, std::pair<std::uint64_t, std::uint64_t>> lines_of_;
  std::map<const read::Process*, read::Rows> rows_;  // empty: the ledgers' rows
  // Calls for which it is unknown whether they pass.
  CallsOfBuckets without_line_;
  CallsOfBuckets other_;  // counted as phase `other`
  std::uint64_t launches_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace tprof::filter
