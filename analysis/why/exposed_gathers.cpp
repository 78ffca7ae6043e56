// All-gathers that no schedule of sharded training makes: of a metric, a log, or what a loss needs
// of all ranks.
#include "why/causes.h"
#include "why/habit.h"

namespace tprof::why {

namespace {

constexpr double kLeastExposed = 0.03;  // of a step
constexpr double kAlike = 0.1;          // ZeRO-1 and -2 gather as much as they reduce

struct Moved {
  double calls = 0;
  double bytes = 0;
  double elements = 0;
};
Moved moved(const read::Process& rank, Bucket bucket) {
  Moved all;
  for (const read::Row& row : read::rows_of(rank)) {
    if (row.bucket != bucket) continue;
    all.calls += static_cast<double>(row.amounts.calls);
    all.bytes += static_cast<double>(row.amounts.bytes);
    all.elements += static_cast<double>(row.amounts.elements);
  }
  return all;
}

}  // namespace

void exposed_gathers(const Evidence& e, diagnose::Findings& found) {
  const read::Process& rank = *e.times.ranks.front();
  const Moved gathered = moved(rank, Bucket::ALLGATHER);
  const Moved reduced = moved(rank, Bucket::ALLREDUCE);
  if (gathered.calls == 0 || moved(rank, Bucket::RESHARDING).calls != 0) return;
  if (std::abs(gathered.elements - reduced.elements) < kAlike * reduced.elements) return;
  const auto b = static_cast<std::size_t>(Bucket::ALLGATHER);
  const double ns =
      within_hosts_spare(e, of_a_step(e, [&](const RankFacts& f) { return f.exposed[b].ns; }));
  if (ns < kLeastExposed * e.step_ns) return;
  const auto each = static_cast<std::uint64_t>(std::llround(gathered.bytes / gathered.calls));
  tell(e, diagnose::Kind::exposed_gathers, ns, {{"bytes", diagnose::Bytes{each}}}, found);
}

}  // namespace tprof::why
