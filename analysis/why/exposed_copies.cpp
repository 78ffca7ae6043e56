// Copies that the device waits for, though no host does: on the stream that computes, or one that
// computation waits for.
#include <algorithm>

#include "why/causes.h"
#include "why/habit.h"
#include "why/stages.h"

namespace tprof::why {

using check::Bytes;

void exposed_copies(const Evidence& e, check::Findings& found) {
  if (e.model == nullptr) return;
  Changes change(e);
  const Places rank_of = ranks_of_run(e);
  Places who;
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  std::uint64_t steps = 0;
  each_step(*e.model, [&](std::size_t rank, Rows rows) {
    const run::Rank& of = e.model->run().ranks[rank];
    const auto blocks = [&](std::size_t row) {  // another cause
      return std::ranges::any_of(of.blocked, [&](const run::Blocked& b) {
        return b.host.from_ns == of.calls.called_ns[row];
      });
    };
    const std::uint64_t before = copies;
    for (const std::size_t row : rows) {
      if (!of.calls.copies(row) || blocks(row)) continue;
      change.scale(rank, row, 0);
      ++copies;
      bytes += of.calls.bytes[row];
    }
    if (copies == before || rank_of[rank] == SIZE_MAX) return;
    ++steps;
    if (who.empty() || who.back() != rank_of[rank]) who.push_back(rank_of[rank]);
  });
  if (copies == 0) return;
  std::ranges::sort(who);
  const bool all = who.size() == e.times.ranks.size();
  tell(e, check::Kind::exposed_copies, change.saving(),
       {{"who", all ? std::nullopt : std::optional(check::Who(processes_of(e, who)))},
        {"calls",
         std::max<std::uint64_t>(1, (copies + steps / 2) / std::max<std::uint64_t>(steps, 1))},
        {"bytes", Bytes{bytes / copies}}},
       found, who);
}

}  // namespace tprof::why
