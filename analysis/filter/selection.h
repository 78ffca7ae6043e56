// Applies a filter to a job: its ranks, the counts of its ledgers, and its calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "filter/calls.h"
#include "filter/counted.h"
#include "filter/ranks.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "stats/comms.h"

namespace tprof::filter {

struct Needs {
  bool counts = true;         // ledgers that have the chosen calls alone
  bool steps = false;         // `found`, also without --steps
  bool device_times = false;  // Chosen::time, for readers that see no calls beside device times
  Comes ranks = Comes::alone;
  bool left_out = false;  // how many calls of each rank's lines are not chosen
};

// While it lives, the ledgers of the job's processes have the chosen calls alone, so that all that
// adds them up is filtered. Code that judges the job has to look at it before, or behind
// give_back().
//
// Ledgers tell operations and communicators, and sizes as far as a row's calls are all on one side
// of a border. Steps come from what the writers counted in them, or from lines, phases and other
// sizes from lines: notes() say which calls have none.
class Selection {
 public:
  // `whole`: the lines of the whole job. Throws BadInput for what the job does not have.
  Selection(const run::Lines& whole, read::Traces& traces, const Filter& filter,
            const Needs& needs);
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;
  ~Selection() { give_back(); }

  const job::Job& job() const { return job_; }  // of the chosen ranks
  const Words& words() const { return filter_.words; }
  const Filter& filter() const { return filter_; }
  const std::vector<std::string>& notes() const { return notes_; }  // sentences, no full stop
  // The steps of the whole job, with the chosen ranks alone; nullopt: nobody needs them.
  const std::optional<steps::Found>& found() const { return found_; }
  read::Chosen chosen() const;                                    // refers to this
  run::Lines lines() const { return lines_.of(job_, chosen()); }  // refers to this
  const Calls& calls() const { return calls_; }
  // The communicators with their roles, by all of their calls; of calls only.
  const std::vector<stats::CommSummary>& comms() const { return comms_; }
  // How many calls have a line, and how many of them are not chosen.
  std::pair<std::uint64_t, std::uint64_t> lines_of(const read::Process& rank) const;

  void give_back();  // the ledgers as they were read

 private:
  void find_steps();
  bool filter_step_lines();
  void count(read::Traces& traces, const Needs& needs);
  read::Rows rows_of_steps(const read::Process& rank) const;

  struct Untold {
    std::map<Bucket, std::uint64_t> calls{};
    std::map<Bucket, std::uint64_t> other{};  // taken for that phase
    std::uint64_t launches = 0;
  };
  std::optional<stats::StepPhase> phase_of(const read::Process& rank, const read::Row& row) const;
  read::Rows filtered(const read::Process& rank, const Counted* lines, bool by_row);
  void add_uncounted(const read::Process& rank);
  void say_untold();

  run::Lines lines_;  // of the whole job
  Filter filter_;
  job::Job job_;
  Calls calls_;
  std::vector<stats::CommSummary> comms_;
  std::optional<steps::Found> found_;
  PhasesOfRanks phases_;
  Calls::BegunByRank begun_;
  std::map<const read::Process*, std::pair<std::uint64_t, std::uint64_t>> lines_of_;
  std::map<read::Process*, std::optional<read::Ledger>> whole_;
  Untold untold_;
  std::vector<std::string> notes_;
};

}  // namespace tprof::filter
