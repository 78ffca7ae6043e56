// The time of each rank in each step, and where it went: computing, communicating behind that,
// waiting for communication, nothing at all.
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

// One step of one rank, in nanoseconds. A float holds them to a ten-millionth, and there are as
// many of these as ranks times steps.
struct Cell {
  // From where the host began the step to where the device did.
  std::int64_t behind_ns = 0;
  float length = 0;       // 0: not known
  float compute = 0;      // its kernels ran, whatever else did
  float unsure = 0;       // they may have run
  float hidden = 0;       // communication while kernels ran
  float exposed = 0;      // communication while none ran: waiting for other ranks, and transfers
  float wait = 0;         // of that, while another rank was missing in some call
  float missing = 0;      // while another rank was missing, whatever this one did
  float to_device = 0;    // bytes of copies from the host that were called in the step
  float to_host = 0;      // bytes of copies to it
  float sent = 0;         // bytes of calls of NCCL
  float reads = 0;        // copies to the host
  float collectives = 0;  // calls of NCCL

  bool known() const { return length > 0; }
  float idle() const { return length - compute - unsure - exposed; }
};

// The rest that is kept of a rank, over the steps that count.
struct RankFacts {
  std::uint64_t steps = 0;  // that count: their cells are known
  // Exposed time of calls of which it is not known when the last rank came: it is waiting or
  // transfers, and in Cell::wait as a whole.
  std::int64_t unmet_ns = 0;
  std::uint64_t messages = 0;   // to and from neighbours, from the first step on
  std::uint64_t exchanged = 0;  // bytes of messages in all-to-alls, likewise
};

struct Times {
  std::vector<const read::Process*> ranks{};
  std::vector<std::int64_t> steps{};         // their numbers; see kMostCells
  std::uint64_t steps_of_run = 0;            // those with the ones that are left out
  std::vector<Cell> cells{};                 // by rank, then by step
  std::vector<RankFacts> facts{};            // by rank
  std::set<const read::Process*> in_pace{};  // where only lengths are known: these tell them
  bool hosts_may_run_ahead = false;          // where only lengths are known
  // A sentence without its full stop: why there are no cells, or but their lengths.
  std::string why{};

  std::vector<float> least_exposed{};  // by step: of all ranks

  bool known() const { return why.empty(); }
  // The time in which the device was held up by other ranks. The slowest rank holds up the others
  // and is not held up itself: what is exposed there is so for everybody. More than that is exposed
  // elsewhere because others were missing, as far as they were: a transfer may fall into that time
  // that would else have been hidden.
  float held_up(std::size_t rank, std::size_t step) const {
    const Cell& c = of(rank)[step];
    return std::clamp(c.exposed - least_exposed[step], 0.0F, c.missing);
  }
  // The time in which it was not.
  float own(std::size_t rank, std::size_t step) const {
    return of(rank)[step].length - held_up(rank, step);
  }
  std::span<const Cell> of(std::size_t rank) const {
    return std::span(cells).subspan(rank * steps.size(), steps.size());
  }
  // True if this rank's host tells how long steps take, where only lengths are known.
  bool tells_pace(std::size_t rank) const {
    return in_pace.empty() || in_pace.contains(ranks[rank]);
  }
  // How long the job takes for a step: that of the rank that waits least in it; 0: not known of
  // all. Ranks that wait for another one's pause may do so in the step behind it: the mean of the
  // ranks would make two half pauses of it.
  double length(std::size_t step) const;
  // The steps that count: known of all ranks, and not the first of several, in which frameworks set
  // up. Indices.
  std::vector<std::size_t> counted() const;
};

// The steps of one of `times.ranks` as its device did them, as far as they are known; ascending.
std::vector<steps::Interval> on_device(const Times& times, const steps::Found& found,
                                       std::size_t rank);

// The means over ranks and over these steps (their places), of which there is one at least.
Cell mean_of(const Times& times, const std::vector<std::size_t>& steps);

// If there are more than this, neighbouring steps are left out: every second, and so on.
inline constexpr std::size_t kMostCells = std::size_t{1} << 22;

Times times_of(const run::Run& run, const job::Job& job, const steps::Found& found);

}  // namespace tprof::why
