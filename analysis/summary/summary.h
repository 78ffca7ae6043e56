// The contents of `tprof summary`, before they are text or JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "check/lateness.h"
#include "filter/selection.h"
#include "job/jobs.h"
#include "tables/comms.h"
#include "tables/durations.h"
#include "tables/phases.h"
#include "tables/steps.h"
#include "tables/totals.h"
#include "why/wait_table.h"

namespace tprof::tables {

// The memory that the processes of a job had allocated (TPROF_MEMORY).
struct MemoryOfProcess {
  const read::Process* process = nullptr;
  read::MemoryUse use;
};
struct Memory {
  bool asked = false;  // by at least one process
  std::vector<MemoryOfProcess> uses;
};

struct Summary {
  const job::Job* job = nullptr;
  std::optional<run::Lines> lines{};  // of what was asked for, from which tables are made
  Buckets buckets{};
  HostMemories host_memory{};
  Phases phases{};
  std::optional<read::Amounts>
      object_gathers{};  // nothing: event lines were not read, or not all are there
  Ops ops{};
  std::optional<OpTimes> op_times{};  // nothing: not asked for
  std::vector<CommSummary> comms{};
  filter::Words only{};                       // what all figures are of; empty: of everything
  std::optional<StepList> only_steps{};       // the steps of these
  std::vector<std::string> notes{};           // what is not exact for that: sentences
  std::optional<check::Lateness> lateness{};  // nothing: not asked for
  std::optional<Slowest> slowest{};           // nothing: not asked for
  std::optional<Histogram> histogram{};       // nothing: not asked for
  why::Peak peak{};                           // that was told
  Memory memory{};                            // of the whole job, as the ledgers tell it
  steps::Found found{};                       // if they were asked for
  std::uint64_t dropped = 0;
  read::Compute compute{};  // of all processes that know it
  // Tracing took so long, and the processes ran for so long; 0: no footer tells.
  std::uint64_t self_cost_ns = 0;  // CPU time of the library's own threads
  double self_in_calls_ns = 0;     // its time inside of calls, by a sample
  std::uint64_t self_run_ns = 0;
  bool complete = true;
  check::Findings findings{};
};

// The buckets of each rank, in the order of the ranks. They are added up each time: of as many
// ranks as there may be they are too much to be kept.
void each_rank(const Summary& summary,
               const std::function<void(std::int64_t rank, const Buckets&)>& see);

// The first four take event lines.
struct SummaryOptions {
  bool read_lines = false;  // for all totals that only they tell
  bool op_times = false;
  std::size_t top = 0;  // of the slowest calls
  std::optional<HistogramOptions> histogram{};
  bool steps = false;  // to be found
  why::Peak peak{};
  const filter::Selection* asked = nullptr;  // leaves the rest out
  // The findings about all calls; nullopt: they are found now.
  std::optional<check::Findings> findings{};
  bool whole_job = true;  // ranks that are not there are missing
};

// Sums up the lines' job. Where no event lines are asked for, they are not loaded.
Summary summarise(const run::Lines& lines, const SummaryOptions& options);

}  // namespace tprof::tables
