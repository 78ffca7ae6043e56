// Copies that the device waits for, though no host does: on the stream that computes, or one that
// computation waits for.
#include <algorithm>
#include <set>
#include <utility>

#include "why/causes.h"
#include "why/habit.h"
#include "why/stages.h"

namespace tprof::why {

using check::Bytes;

void exposed_copies(const Evidence& e, check::Findings& found) {
  Changes change(e);
  const Places rank_of = ranks_of_run(e);
  Places who;
  std::set<std::pair<std::size_t, std::int64_t>> blocking;  // another cause: rank, and when called
  for (std::size_t r = 0; r < rank_of.size(); ++r) {
    for (const run::Blocked& b : e.model->run().ranks[r].blocked) {
      blocking.emplace(r, b.host.from_ns);
    }
  }
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  std::uint64_t steps = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Calls& c = e.model->run().ranks[rank].calls;
    const std::uint64_t before = copies;
    for (const std::size_t row : rows) {
      if (!c.copies(row) || blocking.contains({rank, c.called_ns[row]})) continue;
      change.scale(rank, row, 0);
      ++copies;
      bytes += c.bytes[row];
    }
    if (copies == before || rank_of[rank] == SIZE_MAX) return;
    ++steps;
    if (who.empty() || who.back() != rank_of[rank]) who.push_back(rank_of[rank]);
  });
  if (copies == 0) return;
  std::ranges::sort(who);
  tell(e, check::Kind::exposed_copies, change.saving(),
       {{"calls",
         std::max<std::uint64_t>(1, (copies + steps / 2) / std::max<std::uint64_t>(steps, 1))},
        {"bytes", Bytes{bytes / copies}}},
       found, who);
}

}  // namespace tprof::why
