// Habits of the program have this in common: choices that are alike on all ranks, and what a step
// would be shorter by without them.
#pragma once

#include <vector>

#include "why/cause.h"
#include "why/numbers.h"

namespace tprof::why {

// A figure of each rank and step. The slowest rank shows the least of what is waited for, so a low
// one of the ranks tells what all would gain.
template <typename Of>
double of_a_step(const Evidence& e, Of&& of) {
  std::vector<double> each;
  for (const RankFacts& facts : e.times.facts) {
    if (facts.steps == 0) continue;
    each.push_back(static_cast<double>(of(facts)) / static_cast<double>(facts.steps));
  }
  return quantile(std::move(each), 0.05);
}

// All that a rank moved in a bucket, in the whole run.
read::Amounts moved(const read::Process& rank, Bucket bucket);

// No communication less makes a step shorter than its slowest host needs for it.
double within_hosts_spare(const Evidence& e, double ns);

// Adds the finding, with its `share` and what it `saves`, unless that is nobody's concern.
void tell(const Evidence& e, diagnose::Kind kind, double ns, diagnose::Values values,
          diagnose::Findings& found);
// The same for communication that is exposed for `ns` of a step: it costs as much of that as is
// beyond what the hosts need. Adds both shares to the values, the latter if it is less.
void tell_exposed(const Evidence& e, diagnose::Kind kind, double ns, diagnose::Values values,
                  diagnose::Findings& found);

}  // namespace tprof::why
