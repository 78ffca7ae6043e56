#include "summary/late_steps.h"

#include <map>
#include <utility>

#include "collect/lines.h"

namespace tprof::stats {
namespace {

using read::Process;

// By the communicator's number in the process, and the collective's.
using Numbers = std::map<std::pair<std::int64_t, std::uint64_t>, diagnose::LateArrival*>;

// The device comes to a collective when the host may be in the step behind it already: it is the
// call that is in a step.
struct TheirCalls : collect::Collector {
  TheirCalls(const Process& rank, const Numbers& numbers, const steps::Found& steps)
      : Collector(rank), late(numbers), found(steps) {}

  void call(const read::Event& e) override {
    if (!e.collective() || e.failed || e.captured) return;
    const auto arrival = late.find({*e.comm, e.seq});
    if (arrival != late.end()) arrival->second->step = steps::step_at(found, &rank_, e.ts_ns);
  }

  void state(team::Archive& archive) override {
    for (const auto& [number, arrival] : late) archive(arrival->step);
  }
  bool is_done() const override { return true; }

  const Numbers& late;
  const steps::Found& found;
};

}  // namespace

void want_steps(collect::Passes& passes, diagnose::Lateness& lateness, const steps::Found& found) {
  if (found.how == steps::How::none) return;
  std::map<const Process*, Numbers> by_rank;
  for (diagnose::LateArrival& a : lateness.worst) {
    for (const auto& [number, comm] : a.rank->comms) {
      if (comm.id == a.communicator) by_rank[a.rank][{number, a.seq}] = &a;
    }
  }
  passes.want(
      [late = std::move(by_rank), &found](const Process& rank, collect::Collectors& all) {
        const auto numbers = late.find(&rank);
        if (numbers == late.end()) return;
        collect::want<TheirCalls>(rank, all, numbers->second, found);
      },
      [](const collect::Lines&) {});
}

}  // namespace tprof::stats
