// Why a job takes as long as it does: what is known about its steps, and what would make them
// shorter.
#pragma once

#include <optional>

#include "check/finding.h"
#include "run/lines.h"
#include "steps/found.h"
#include "why/times.h"
#include "why/wait_table.h"

namespace tprof::why {

// How many calls of all ranks are analysed, and how many of these replayed, with this much memory
// (measured: 200 and 1,000 bytes per call). If there are more, only steps in the middle of the job
// are taken.
struct Room {
  static constexpr std::uint64_t kReplayed = 1000;
  explicit constexpr Room(std::uint64_t bytes = std::uint64_t{1} << 30)
      : calls(bytes / 200), replayed(bytes / kReplayed) {}
  std::uint64_t calls;
  std::uint64_t replayed;
};

struct Why {
  std::optional<Times> times{};
  WaitTable waits{};
  Peak peak{};          // from the user
  Room room{};          // from the user
  Cell mean{};          // over the steps that count, if any, and all ranks
  double unmet_ns = 0;  // exposed time that may be waits or transfers
  check::Findings findings{};
  std::string no_causes{};  // a sentence without a full stop: why none are known

  bool known() const { return times && times->known(); }
  std::string why_not() const { return times ? times->why : "the lines were not read"; }
};

// Says how much memory is needed if nothing was loaded. A sentence without a full stop.
std::string needs_room(const run::Run& run);

// Loads a job's calls, as many as fit.
run::Run run_of(const run::Lines& lines, const steps::Found& found, const Room& room = Room());

// Finds only the ranks that hold up the others: always or in some steps (is_slow_rank), or in a
// single long step. `times` must be known.
check::Findings ranks_that_hold_up(const run::Lines& lines, const steps::Found& found, run::Run run,
                                   const Times& times);

// Fills everything; `peak` and `room` are inputs.
void find(const run::Lines& lines, const steps::Found& found, Why& to);

}  // namespace tprof::why
