// The filters, the same in each command that can honour them: rows of option_table.cpp.
#include "cli/option_table.h"

namespace tprof::cli {

std::vector<Option> filter_rows(Options& o, unsigned which) {
  filter::Words& only = o.only;
  const std::pair<unsigned, Option> all[] = {
      {kRanks, {"--ranks", &only.ranks, "only these ranks, such as 0-3,7", "LIST"}},
      {kSteps,
       {"--steps", &only.steps, "only calls in these steps, such as 10-, 3-7 or 3,5-7", "LIST"}},
      {kOps,
       {"--ops", &only.ops,
        "only these buckets or functions, such as ALLGATHER,H2D or 'nccl*Reduce*'", "NAMES"}},
      {kSizes,
       {"--sizes", &only.sizes, "only calls of so many bytes, such as 1M-64M, 64K-, -4K or 32768",
        "RANGE"}},
      {kComm,
       {"--comm", &only.comms,
        "only calls on these communicators: name, id or its beginning, or number", "LIST"}},
      {kPhase,
       {"--phase", &only.phases,
        "only calls in these phases of a step: load, forward, backward, optimizer, other",
        "NAMES"}}};
  std::vector<Option> rows;
  for (const auto& [filter, row] : all) {
    if ((which & filter) != 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace tprof::cli
