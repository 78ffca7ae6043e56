// Defines a cause: something that makes the job slower than it could be, and what that costs. To
// add one, define it in a file of its own and add a row to causes.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/finding.h"
#include "graph/model.h"
#include "job/jobs.h"
#include "why/times.h"
#include "why/wait_table.h"

namespace tprof::why {

class Replays;

// The facts that are known of a job. All of it is of the steps that count (Times::counted), which
// are not empty.
struct Evidence {
  const job::Job& job;
  const Times& times;
  const std::vector<std::size_t>& steps;
  const WaitTable& waits;
  const std::map<std::string, std::string, std::less<>>& roles;  // of communicators, where sure
  const graph::Model* model = nullptr;  // null: a replay of it is not its steps
  Replays* replays = nullptr;           // of the model; null: of none
  double step_ns = 0;  // how long a step takes: the mean, as costs are means over steps
};

using Places = std::vector<std::size_t>;

// Less than this share of a step is nobody's concern.
inline constexpr double kLeastShare = 0.01;

// Returns the cost in the whole run of `ns` of a step, which are known within `doubt_ns`.
check::Cost cost_of(const Evidence& of, double ns, double doubt_ns);

// The numbers of these steps, given by their places in `Evidence::steps`; "7,15,23-25".
text::Ranks steps_of(const Evidence& e, const std::vector<std::size_t>& places);
std::string numbers_of(const Evidence& e, const std::vector<std::size_t>& places);
// The first of them, where they are many: "7,15,23-25,…".
std::string first_numbers_of(const Evidence& e, const std::vector<std::size_t>& places);
// All of them, if they are few.
std::optional<std::string> numbers_if_few(const Evidence& e,
                                          const std::vector<std::size_t>& places);

// The distance between places in ascending order, if they are every n-th of all, n more than one.
// The very last may be missing: what ends a step may be behind the last one. Else 0, also where the
// numbers of the steps have gaps: nobody knows which ones between them are alike.
std::size_t period_of(const Evidence& e, const std::vector<std::size_t>& places);
inline constexpr std::size_t kFewestOfPeriod = 4;  // three may be as far apart by chance

// The places of all steps in `Evidence::steps`, and of all ranks in `Times::ranks`.
Places every_step(const Evidence& e);
Places every_rank(const Evidence& e);
check::Processes processes_of(const Evidence& e, const Places& ranks);

// True for what slow_ranks.cpp tells.
constexpr bool is_slow_rank(check::Kind kind) {
  using check::Kind;
  return kind == Kind::slow_gpu || kind == Kind::slow_input || kind == Kind::slow_cpu ||
         kind == Kind::slow_copies;
}

// True for a rank that sends to or receives from one other in its steps: a stage of a pipeline.
// Weights that are handed out before the first step make none (DTensor sends them).
bool sends(const Evidence& e, std::size_t rank);

using Cause = void (*)(const Evidence&, check::Findings&);

}  // namespace tprof::why
