// Why a job takes the time that it takes: what is known of its steps, and what would make them
// shorter.
#pragma once

#include <optional>

#include "check/finding.h"
#include "run/lines.h"
#include "steps/found.h"
#include "why/times.h"
#include "why/wait_table.h"

namespace tprof::why {

// So many calls of all ranks are looked at, and so many of these replayed: as many as these bytes
// have room for, with what is read beside them (measured: 200 and 1,000 bytes a call). If there are
// more, the steps in the job's middle are taken.
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
  Peak peak{};          // what the user says of it, and
  Room room{};          // gives
  Cell mean{};          // of the steps that count, over all ranks; if there are any
  double unmet_ns = 0;  // of its exposed time: waiting or transfers, which is not known
  check::Findings findings{};
  std::string no_causes{};  // a sentence without its full stop: why none are known

  bool known() const { return times && times->known(); }
  std::string why_not() const { return times ? times->why : "the lines were not read"; }
};

// Says how much room a run needs of which nothing was loaded. A sentence without its full stop.
std::string needs_room(const run::Run& run);

// Loads a job's calls, as far as there is room.
run::Run run_of(const run::Lines& lines, const steps::Found& found, const Room& room = Room());

// Finds of the causes only the ranks that hold up the others: always, in some steps (is_slow_rank),
// or in one that takes far longer. `times` have to be known.
check::Findings ranks_that_hold_up(const run::Lines& lines, const steps::Found& found, run::Run run,
                                   const Times& times);

// Fills all but `peak` and `room`, which it takes. `meetings` are those of these lines.
void find(const run::Lines& lines, const steps::Found& found, Why& to);

}  // namespace tprof::why
