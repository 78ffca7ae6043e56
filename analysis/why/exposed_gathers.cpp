// All-gathers that no schedule of sharded training makes: of a metric, a log, or what a loss needs
// of all ranks.
#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

namespace {

constexpr double kLeastExposed = 0.03;  // of a step
constexpr double kAlike = 0.1;          // ZeRO-1 and -2 gather as much as they reduce

}  // namespace

void exposed_gathers(const Evidence& e, diagnose::Findings& found) {
  const read::Process& rank = *e.times.ranks.front();
  const read::Amounts gathered = moved(rank, Bucket::ALLGATHER);
  if (gathered.calls == 0 || moved(rank, Bucket::RESHARDING).calls != 0) return;
  const auto reduced = static_cast<double>(moved(rank, Bucket::ALLREDUCE).elements);
  if (std::abs(static_cast<double>(gathered.elements) - reduced) < kAlike * reduced) return;
  const auto b = static_cast<std::size_t>(Bucket::ALLGATHER);
  const double ns =
      within_hosts_spare(e, of_a_step(e, [&](const RankFacts& f) { return f.exposed[b].ns; }));
  if (ns < kLeastExposed * e.step_ns) return;
  // Frameworks gather a few bytes when they set up, which is no part of a step.
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  for (const RankFacts& f : e.times.facts) {
    calls += f.sent[b].calls;
    bytes += f.sent[b].bytes;
  }
  if (calls == 0) return;
  tell(e, diagnose::Kind::exposed_gathers, ns, {{"bytes", diagnose::Bytes{bytes / calls}}}, found);
}

}  // namespace tprof::why
