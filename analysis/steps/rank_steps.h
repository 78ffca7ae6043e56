// Finds the steps of one rank in its calls.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "steps/flow.h"
#include "steps/found.h"
#include "steps/period.h"

namespace tprof::steps {

// The operations that end steps on a communicator. The id and the numbers are the same on all its
// ranks.
struct Anchors {
  std::string comm{};
  std::vector<std::uint64_t> numbers{};  // ascending, one a step
};

struct RankSteps {
  const read::Process* rank = nullptr;
  std::vector<Interval> intervals{};
  std::vector<Anchors> anchors{};
  Period period{};
  std::optional<Flow> flow{};  // of a pipeline stage whose steps are not proved by its calls
};

RankSteps steps_of(const read::Process& rank, const Sequence& sequence, std::int64_t end_ns);

bool lines_are_whole(const read::Process& p);

// "rank 3", "ranks 0-2".
std::string names(const std::vector<const read::Process*>& ranks);

// Joins the ranks' steps into one answer. `none`: the ranks without steps, by reason.
using RanksByWhy = std::map<std::string, std::vector<const read::Process*>>;
Found one_answer(std::vector<RankSteps> ranks, RanksByWhy& none);

}  // namespace tprof::steps
