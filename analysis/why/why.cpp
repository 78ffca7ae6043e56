#include "why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "check/names.h"
#include "tables/comms.h"
#include "why/causes.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

constexpr double kMostApart = 0.05;  // the largest error of a usable graph

// The mean over ranks and steps.
double unmet_ns(std::span<const RankFacts> ranks) {
  double sum = 0;
  std::uint64_t steps = 0;
  for (const RankFacts& rank : ranks) {
    sum += static_cast<double>(rank.unmet_ns);
    steps += rank.steps;
  }
  return steps == 0 ? 0 : sum / static_cast<double>(steps);
}

// A graph takes more memory than the calls: for a large job it has only some of the steps in `run`.
struct Modelled {
  run::Run run;
  std::unique_ptr<const graph::Model> model{};  // null: its replay is not what was measured,
  std::string why_not{};                        // or it does not fit

  Modelled(const run::Lines& lines, const steps::Found& found, const Room& room, run::Run of_job)
      : run(std::move(of_job)) {
    std::size_t calls = 0;
    for (const run::Rank& rank : run.ranks) calls += rank.calls.size();
    if (calls > room.replayed) {
      run = run::Run();  // freed before the next one is loaded
      run = graph::run_of(lines, found, room.replayed);
    }
    model = std::make_unique<const graph::Model>(run, found.how == steps::How::mark);
    const double measured = graph::mean_of(model->measured_ns());
    const double replayed = graph::mean_of(model->replayed_ns());
    if (run.no_room_for != 0) {
      why_not = needs_room(run);
    } else if (!run.timed()) {
      why_not = "calls of fewer than two ranks were timed on the device";
    } else if (measured == 0) {
      why_not = "they need steps after the first one, and no calls are in such steps";
    } else if (!model->graph().sound()) {
      why_not = "the times of calls contradict the order in which they run";
    } else if (std::abs(replayed - measured) >= kMostApart * measured) {
      why_not = fmt::format("a replay gives {} for a step, but it took {}",
                            check::duration(std::llround(replayed)),
                            check::duration(std::llround(measured)));
    }
    if (!why_not.empty()) model.reset();
  }
};

// The mean of these steps as the graph has them, since replays are compared with that.
double step_ns(const graph::Model& model, const Times& times,
               const std::vector<std::size_t>& steps) {
  graph::StepsNs counted;
  for (const std::size_t s : steps) {
    const auto measured = model.measured_ns().find(times.steps[s]);
    if (measured != model.measured_ns().end()) counted.insert(*measured);
  }
  return graph::mean_of(counted);
}

// The evidence, with everything it refers to.
struct Known {
  const std::vector<std::size_t> steps;
  const Modelled of;
  const std::map<std::string, std::string, std::less<>> roles;
  Evidence e;
  std::unique_ptr<Replays> replays{};

  Known(const run::Lines& lines, const steps::Found& found, const Room& room, run::Run run,
        const Times& times, const WaitTable& waits)
      : steps(times.counted()),
        of(lines, found, room, std::move(run)),
        roles(tables::sure_roles(lines.job())),
        e{.job = lines.job(), .times = times, .steps = steps, .waits = waits, .roles = roles} {
    e.step_ns = mean_of(times, steps).length;
    e.model = of.model.get();
    if (e.model == nullptr) return;
    const double in_graph = step_ns(*e.model, times, steps);
    if (in_graph > 0) e.step_ns = in_graph;
    replays = std::make_unique<Replays>(e);
    e.replays = replays.get();
  }
};

}  // namespace

std::string needs_room(const run::Run& run) {
  const std::uint64_t mib = (run.no_room_for * Room::kReplayed >> 20) + 1;
  return fmt::format("the calls of a few steps need more memory: --memory {}", mib);
}

run::Run run_of(const run::Lines& lines, const steps::Found& found, const Room& room) {
  return graph::run_of(lines, found, room.calls);
}

check::Findings ranks_that_hold_up(const run::Lines& lines, const steps::Found& by_steps,
                                   run::Run run, const Times& times) {
  check::Findings found;
  if (times.counted().empty()) return found;
  const WaitTable no_waits;
  const Known known(lines, by_steps, Room(), std::move(run), times, no_waits);
  slow_ranks(known.e, found);
  step_series(known.e, found);
  std::erase_if(found, [](const auto& f) { return f.ranks.empty(); });
  return found;
}

void find(const run::Lines& lines, const steps::Found& found, Why& to) {
  run::Run run = run_of(lines, found, to.room);
  to.times = times_of(run, lines.job(), found);
  to.waits = wait_table_of(run, lines.job(), found, to.peak);
  const std::vector<std::size_t> steps = to.times->counted();
  if (steps.empty()) return;
  to.mean = mean_of(*to.times, steps);
  to.unmet_ns = unmet_ns(to.times->facts);
  const Known known(lines, found, to.room, std::move(run), *to.times, to.waits);
  to.no_causes = known.of.why_not;
  constexpr Cause kAll[] = {
#define X(name) name,
      TPROF_CAUSES(X)
#undef X
  };
  for (const Cause cause : kAll) {
    if (known.e.model != nullptr || cause == step_series) cause(known.e, to.findings);
  }
}

}  // namespace tprof::why
