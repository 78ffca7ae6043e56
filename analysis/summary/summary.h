// The contents of `tprof summary`, before they are text or JSON.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/lateness.h"
#include "filter/selection.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "stats/comms.h"
#include "stats/histogram.h"
#include "stats/layers.h"
#include "stats/memory.h"
#include "stats/op_times.h"
#include "stats/phases.h"
#include "stats/ranges.h"
#include "stats/rest.h"
#include "stats/sites.h"
#include "stats/slowest.h"
#include "stats/steps.h"
#include "stats/totals.h"
#include "why/wait_table.h"

namespace tprof::stats {

struct Summary {
  const job::Job* job = nullptr;
  Buckets buckets{};
  HostMemories host_memory{};
  Phases phases{};
  std::optional<Rest> rest;  // what of them is no autograd thread's; nothing: not asked for
  std::optional<read::Amounts>
      object_gathers;  // nothing: event lines were not read, or not all are there
  Ops ops;
  std::optional<OpTimes> op_times;  // nothing: event lines were not read
  std::vector<CommSummary> comms;
  std::optional<RangeTotals> ranges;           // nothing: not asked for
  std::optional<Layers> layers;                // nothing: not asked for
  std::optional<SiteTotals> sites;             // nothing: not asked for
  std::optional<StepTotals> steps;             // nothing: not asked for
  filter::Words only;                          // what all figures are of; empty: of everything
  std::optional<StepList> only_steps;          // the steps of these
  std::vector<std::string> notes;              // what is not exact for that: sentences
  std::optional<diagnose::Lateness> lateness;  // nothing: not asked for
  std::optional<why::WaitTable> waits;         // nothing: not asked for
  why::Transfers transfers;                    // what it is made of
  std::optional<Slowest> slowest;              // nothing: not asked for
  std::optional<Histogram> histogram;          // nothing: not asked for
  Memory memory;                               // of the whole job, as the ledgers tell it
  steps::Found found;                          // the steps, where calls of the two above are said
                                               // to be in one
  std::uint64_t dropped = 0;
  read::Compute compute;  // of all processes that know it
  // CPU time of the library's own threads, and how long their processes ran; 0: no footer tells.
  std::uint64_t self_cost_ns = 0;
  std::uint64_t self_run_ns = 0;
  bool complete = true;
  diagnose::Findings findings;
};

// The buckets of each rank, in the order of the ranks. They are added up each time: of as many
// ranks as there may be they are too much to be kept.
void each_rank(const Summary& summary,
               const std::function<void(std::int64_t rank, const Buckets&)>& see);

struct SummaryOptions {
  bool read_lines = false;  // for what only event lines tell
  bool phases = false;      // of other threads than autograd's, from event lines
  bool ranges = false;      // NVTX, from event lines too
  bool layers = false;      // from event lines too
  bool sites = false;       // from event lines too
  bool steps = false;       // from event lines too
  bool lateness = false;    // from event lines too
  bool op_times = false;    // from event lines too
  bool waits = false;       // from event lines too
  why::Peak peak{};         // with `waits`
  std::size_t top = 0;      // of the slowest calls, from event lines too
  std::optional<HistogramOptions> histogram{};  // from event lines too
  const filter::Selection* asked = nullptr;     // leaves the rest out
  // The findings from before anything was left out of the ledgers; nullopt: they are found now.
  std::optional<diagnose::Findings> findings{};
  bool whole_job = true;                                 // ranks that are not there are missing
  diagnose::ArrivalReader arrivals{};                    // with `lateness`
  std::shared_ptr<const diagnose::Meetings> meetings{};  // of all lines, if somebody has them
};

// Sums up the lines' job. Where no event lines are asked for, they are not loaded.
Summary summarise(const run::Lines& lines, const SummaryOptions& options);

}  // namespace tprof::stats
