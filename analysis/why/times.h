// Splits the time of each rank in each step: computation, hidden and exposed communication, idle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "interpose/format/buckets.h"
#include "job/jobs.h"
#include "run/run.h"
#include "steps/found.h"
#include "text/kept.h"

namespace tprof::why {

// One step of one rank, in nanoseconds. Floats are exact enough, and there are ranks × steps of
// these.
struct Cell {
  // From where the host began the step to where the device began it.
  std::int64_t behind_ns = 0;
  float length = 0;       // 0: unknown
  float compute = 0;      // its kernels ran
  float unsure = 0;       // its kernels may have run
  float hidden = 0;       // communication while kernels ran
  float exposed = 0;      // communication while none ran: waits for other ranks, and transfers
  float wait = 0;         // the part of exposed in which another rank was missing in some call
  float missing = 0;      // another rank was missing, whatever this one did
  float to_device = 0;    // bytes of copies from the host, called in the step
  float to_host = 0;      // bytes of copies to the host
  float sent = 0;         // bytes of NCCL calls
  float reads = 0;        // number of copies to the host
  float collectives = 0;  // NCCL calls

  bool known() const { return length > 0; }
  float idle() const { return length - compute - unsure - exposed; }
};

// Further facts about a rank, over the steps that count.
struct RankFacts {
  std::uint64_t steps = 0;  // with known cells
  // Exposed time of calls for which it is unknown when the last rank came. It may be waits or
  // transfers; Cell::wait includes all of it.
  std::int64_t unmet_ns = 0;
  std::uint64_t messages = 0;   // with neighbours, from the first step on
  std::uint64_t exchanged = 0;  // bytes of messages in all-to-alls, likewise
};

struct Times {
  std::vector<const read::Process*> ranks{};
  std::vector<std::int64_t> steps{};         // step numbers; see kMostCells
  std::uint64_t steps_of_run = 0;            // including those left out
  std::vector<Cell> cells{};                 // by rank, then step
  std::vector<RankFacts> facts{};            // by rank
  std::set<const read::Process*> in_pace{};  // if only lengths are known: the ranks that tell them
  bool hosts_may_run_ahead = false;          // if only lengths are known
  // A sentence without a full stop: why there are no cells, or only their lengths.
  std::string why{};

  std::vector<float> least_exposed{};  // by step, over all ranks

  bool known() const { return why.empty(); }
  // How long other ranks held up the device. The slowest rank is not held up itself: its exposed
  // time is everybody's. The exposed time of other ranks beyond that is due to missing ranks, at
  // most as long as ranks were missing: meanwhile a transfer may be exposed that would otherwise be
  // hidden.
  float held_up(std::size_t rank, std::size_t step) const {
    const Cell& c = of(rank)[step];
    return std::clamp(c.exposed - least_exposed[step], 0.0F, c.missing);
  }
  // The rest of the step.
  float own(std::size_t rank, std::size_t step) const {
    return of(rank)[step].length - held_up(rank, step);
  }
  std::span<const Cell> of(std::size_t rank) const {
    return std::span(cells).subspan(rank * steps.size(), steps.size());
  }
  // True if this rank's host tells how long steps take, if only lengths are known.
  bool tells_pace(std::size_t rank) const {
    return in_pace.empty() || in_pace.contains(ranks[rank]);
  }
  // How long the job takes for a step: the time of the rank that waits least; 0: not known for all
  // ranks. Ranks may wait for another rank's pause in the next step: a mean over ranks would make
  // two half pauses of it.
  double length(std::size_t step) const;
  // Indices of the steps that count: known for all ranks, and not the first of several, in which
  // frameworks set up.
  std::vector<std::size_t> counted() const;
};

// The known steps of one of `times.ranks` on its device, ascending.
std::vector<steps::Interval> on_device(const Times& times, const steps::Found& found,
                                       std::size_t rank);

// The means over ranks and these steps (indices, at least one).
Cell mean_of(const Times& times, const std::vector<std::size_t>& steps);

// If there are more, only every second step is kept, or every third, and so on.
inline constexpr std::size_t kMostCells = std::size_t{1} << 22;

Times times_of(const run::Run& run, const job::Job& job, const steps::Found& found);

}  // namespace tprof::why
