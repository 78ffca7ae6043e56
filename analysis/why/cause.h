// A cause: something that makes the job slower than it could be, and what it costs. To add one,
// define it in its own file and add a row to causes.h.
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

// The knowledge about a job, for the steps that count (Times::counted); there is at least one.
struct Evidence {
  const job::Job& job;
  const Times& times;
  const std::vector<std::size_t>& steps;
  const WaitTable& waits;
  const std::map<std::string, std::string, std::less<>>& roles;  // of communicators, if certain
  const graph::Model* model = nullptr;  // null: its replay does not give the measured steps
  Replays* replays = nullptr;           // null without a model
  double step_ns = 0;                   // the mean length of a step, as costs are means over steps
};

using Places = std::vector<std::size_t>;

// A smaller share of a step is not worth reporting.
inline constexpr double kLeastShare = 0.01;

// Returns the cost in the whole run of `ns` ± `doubt_ns` per step.
check::Cost cost_of(const Evidence& of, double ns, double doubt_ns);

// Returns the numbers of these steps (indices into Evidence::steps): "7,15,23-25".
text::Ranks steps_of(const Evidence& e, const std::vector<std::size_t>& places);
// The same, cut off if they are many: "7,15,23-25,…".
std::string first_numbers_of(const Evidence& e, const std::vector<std::size_t>& places);

// Returns n if the places are every nth step, n > 1; else 0. The last one may be missing, since
// what made it long may come after the last step. Also 0 if step numbers have gaps: nobody knows
// what the missing steps were like.
std::size_t period_of(const Evidence& e, const std::vector<std::size_t>& places);
inline constexpr std::size_t kFewestOfPeriod = 4;  // three may be evenly spaced by chance

// All indices into Evidence::steps, and into Times::ranks.
Places every_step(const Evidence& e);
Places every_rank(const Evidence& e);
check::Processes processes_of(const Evidence& e, const Places& ranks);

// True for the kinds that slow_ranks.cpp finds.
constexpr bool is_slow_rank(check::Kind kind) {
  using check::Kind;
  return kind == Kind::slow_gpu || kind == Kind::slow_input || kind == Kind::slow_cpu ||
         kind == Kind::slow_copies;
}

// True if the rank exchanges messages with a neighbour in its steps, as a pipeline stage does.
// Weights that are distributed before the first step don't count (DTensor sends them).
bool sends(const Evidence& e, std::size_t rank);

using Cause = void (*)(const Evidence&, check::Findings&);

}  // namespace tprof::why
