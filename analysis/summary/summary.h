// The contents of `tprof summary`, as data.
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

// Memory allocated by the processes of a job (TPROF_MEMORY).
struct MemoryOfProcess {
  const read::Process* process = nullptr;
  read::MemoryUse use;
};
struct Memory {
  bool asked = false;  // at least one process recorded it
  std::vector<MemoryOfProcess> uses;
};

struct Summary {
  const job::Job* job = nullptr;
  std::optional<run::Lines> lines{};  // the chosen lines, for tables
  Buckets buckets{};
  HostMemories host_memory{};
  Phases phases{};
  std::optional<read::Amounts>
      object_gathers{};  // nullopt: event lines were not read, or some are missing
  Ops ops{};
  std::optional<OpTimes> op_times{};  // nothing: not asked for
  std::vector<CommSummary> comms{};
  filter::Words only{};                       // the filters; empty: none
  std::optional<StepList> only_steps{};       // those of --steps
  std::vector<std::string> notes{};           // limits of the filters: sentences
  std::optional<check::Lateness> lateness{};  // nothing: not asked for
  std::optional<Slowest> slowest{};           // nothing: not asked for
  std::optional<Histogram> histogram{};       // nothing: not asked for
  why::Peak peak{};                           // given by the user
  Memory memory{};                            // of the whole job, from the ledgers
  steps::Found found{};                       // if wanted
  std::uint64_t dropped = 0;
  read::Compute compute{};  // sum over processes that know it
  // The cost of tracing; 0: no footer has it.
  std::uint64_t self_cost_ns = 0;  // CPU time of the library's own threads
  double self_in_calls_ns = 0;     // its time inside calls, by sampling
  std::uint64_t self_run_ns = 0;
  bool complete = true;
  check::Findings findings{};
};

// Calls see(rank, its buckets) in rank order. They are computed each time, since keeping them for
// all ranks would take too much memory.
void each_rank(const Summary& summary,
               const std::function<void(std::int64_t rank, const Buckets&)>& see);

// The first four need event lines.
struct SummaryOptions {
  bool read_lines = false;  // for totals that only lines have
  bool op_times = false;
  std::size_t top = 0;  // how many of the slowest calls
  std::optional<HistogramOptions> histogram{};
  bool steps = false;  // find steps
  why::Peak peak{};
  const filter::Selection* asked = nullptr;  // null: no filters
  // The findings about all calls; nullopt: diagnose now.
  std::optional<check::Findings> findings{};
};

// Sums up the lines' job. Loads event lines only if needed.
Summary summarise(const run::Lines& lines, const SummaryOptions& options);

}  // namespace tprof::tables
