#include "summary/late_steps.h"

#include <map>
#include <utility>

#include "run/lines.h"

namespace tprof::stats {
namespace {

using read::Process;

// By the communicator's number in the process, and the collective's.
using Numbers = std::map<std::pair<std::int64_t, std::uint64_t>, diagnose::LateArrival*>;

// The device comes to a collective when the host may be in the step behind it already: it is the
// call that is in a step.
struct TheirCalls {
  TheirCalls(const Process& rank, const Numbers& numbers, const steps::Found& steps)
      : rank_(rank), late(numbers), found(steps) {}

  void call(const read::Event& e) {
    if (!e.collective() || e.failed || e.captured) return;
    const auto arrival = late.find({*e.comm, e.seq});
    if (arrival != late.end()) arrival->second->step = steps::step_at(found, &rank_, e.ts_ns);
  }

  const Process& rank_;
  const Numbers& late;
  const steps::Found& found;
};

}  // namespace

diagnose::Lateness lateness_in_steps(const run::Lines& lines, const steps::Found& found,
                                     const diagnose::Meetings& meetings,
                                     const diagnose::ArrivalReader& arrivals) {
  diagnose::Lateness lateness =
      diagnose::lateness_of(meetings, diagnose::host_clocks(meetings), arrivals);
  if (found.how == steps::How::none) return lateness;
  std::map<const Process*, Numbers> by_rank;
  for (diagnose::LateArrival& a : lateness.worst) {
    for (const auto& [number, comm] : a.rank->comms) {
      if (comm.id == a.communicator) by_rank[a.rank][{number, a.seq}] = &a;
    }
  }
  lines.each(
      [&](const Process& rank) {
        const auto numbers = by_rank.find(&rank);
        return numbers == by_rank.end()
                   ? std::nullopt
                   : std::optional<TheirCalls>(std::in_place, rank, numbers->second, found);
      },
      [](const TheirCalls& /*the steps are in their place*/) {});
  return lateness;
}

}  // namespace tprof::stats
