// All-gathers that each step makes behind its backward pass, where sharded training needs none: of
// whole weights for a norm or a checkpoint, or of something that the program compares.
#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

namespace {

// The mean over ranks: what is waited for is not in it.
double mean_of_steps(const Evidence& e, std::int64_t Behind::*part) {
  double sum = 0;
  double steps = 0;
  for (const RankFacts& f : e.times.facts) {
    sum += static_cast<double>(f.behind.*part);
    steps += static_cast<double>(f.steps);
  }
  return steps == 0 ? 0 : sum / steps;
}

}  // namespace

void gathers_behind(const Evidence& e, diagnose::Findings& found) {
  const RankFacts* least = nullptr;
  for (const RankFacts& f : e.times.facts) {
    if (f.steps == 0) continue;
    // Ranks of sharded training do the same: where one doesn't, it is no habit.
    if (f.behind.steps * 2 <= f.steps) return;
    if (least == nullptr ||
        f.behind.calls * least->behind.steps < least->behind.calls * f.behind.steps) {
      least = &f;
    }
  }
  if (least == nullptr) return;
  const Behind& its = least->behind;
  // Where the device stands still between them, the host is what takes so long, and would have gone
  // on instead.
  const double exposed = mean_of_steps(e, &Behind::ns);
  const double idle = mean_of_steps(e, &Behind::idle_ns);
  const double ns = 10 * idle > exposed ? exposed + idle : within_hosts_spare(e, exposed);
  const auto calls = static_cast<std::uint64_t>(
      std::llround(static_cast<double>(its.calls) / static_cast<double>(its.steps)));
  tell(e, diagnose::Kind::gathers_behind, ns,
       {{"calls", calls}, {"bytes", diagnose::Bytes{its.bytes / its.calls}}}, found);
}

}  // namespace tprof::why
