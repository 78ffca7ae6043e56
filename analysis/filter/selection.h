// Applies a filter to a job: its ranks, the counts of its ledgers, and its calls.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "filter/calls.h"
#include "filter/ranks.h"
#include "job/jobs.h"
#include "run/lines.h"
#include "stats/comms.h"
#include "stats/groups.h"

namespace tprof::filter {

struct Needs {
  bool counts = true;         // rows of the chosen calls alone
  bool steps = false;         // `found`, also without --steps
  bool device_times = false;  // Chosen::time, for readers that see no calls beside device times
  Comes ranks = Comes::alone;
  bool left_out = false;  // how many calls of each rank's lines are not chosen
};

// A row of a ledger and its calls' lines have this in common.
struct LineKey {
  Bucket bucket = Bucket::ALLGATHER;
  text::Kept name{};
  text::Kept dtype{};
  std::int64_t comm = -1;  // -1: a copy
  std::int64_t bytes_class = -1;

  auto operator<=>(const LineKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CallKey : LineKey {
  std::optional<std::int64_t> device{};
  HostMemory host_memory = HostMemory::unknown;
  bool passes = true;

  std::uint64_t hash() const {
    return run::hash_of(static_cast<std::int64_t>(bucket), name, dtype, comm, bytes_class,
                        device.value_or(-1), static_cast<std::int64_t>(host_memory),
                        std::int64_t{passes});
  }
  auto operator<=>(const CallKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
using Counted = std::map<CallKey, read::Amounts>;

// Ledgers tell operations and communicators, and sizes as far as a row's calls are all on one side
// of a border. Steps come from what the writers counted in them, or from lines, phases and other
// sizes from lines: notes() say which calls have none. Code that judges the job looks at all calls
// of its ranks, others at those that lines() tells.
class Selection {
 public:
  // `whole`: the lines of the whole job. Throws BadInput for what the job does not have.
  Selection(const run::Lines& whole, const Filter& filter, const Needs& needs);
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  const job::Job& job() const { return job_; }  // of the chosen ranks
  const Words& words() const { return filter_.words; }
  const Filter& filter() const { return filter_; }
  const std::vector<std::string>& notes() const { return notes_; }  // sentences, no full stop
  // The steps of the whole job, with the chosen ranks alone; nullopt: nobody needs them.
  const std::optional<steps::Found>& found() const { return found_; }
  read::Chosen chosen() const;                                    // refers to this
  run::Lines lines() const { return lines_.of(job_, chosen()); }  // refers to this
  const Calls& calls() const { return calls_; }
  // How many calls have a line, and how many of them are not chosen.
  std::pair<std::uint64_t, std::uint64_t> lines_of(const read::Process& rank) const;

 private:
  struct Untold {
    std::map<Bucket, std::uint64_t> calls{};
    std::map<Bucket, std::uint64_t> other{};  // taken for that phase
    std::uint64_t launches = 0;
  };

  void find_steps();
  void find_phases();
  bool filter_step_lines();
  void count(const Needs& needs);
  Counted counted_in_steps(const read::Process& rank);
  std::optional<stats::StepPhase> phase_of(const read::Process& rank, const read::Row& row) const;
  read::Rows filtered(const read::Process& rank, const Counted& lines, bool by_row);
  void say_untold();

  run::Lines lines_;  // of the whole job
  Filter filter_;
  job::Job job_;
  Calls calls_;
  std::optional<steps::Found> found_;
  PhasesOfRanks phases_;
  Calls::BegunByRank begun_;
  std::map<const read::Process*, std::pair<std::uint64_t, std::uint64_t>> lines_of_;
  std::map<const read::Process*, read::Rows> rows_;  // empty: those of the ledgers
  Untold untold_;
  std::vector<std::string> notes_;
};

}  // namespace tprof::filter
