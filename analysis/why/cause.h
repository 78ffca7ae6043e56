// Defines a cause: something that makes the job slower than it could be, and what that costs. To
// add one, define it in a file of its own and add a row to causes.h.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "job/jobs.h"
#include "why/times.h"
#include "why/transfers.h"

namespace tprof::why {

// What is known of a job. All of it is of the steps that count (Times::counted), which are not
// empty.
struct Evidence {
  const job::Job& job;
  const Times& times;
  const std::vector<std::size_t>& steps;
  const Transfers& transfers;
  double step_ns = 0;  // how long a step takes: the mean, as costs are means over steps
};

// Less than this share of a step is nobody's concern.
inline constexpr double kLeastShare = 0.01;

// What `ns` of a step, which is known within `doubt_ns`, are in the whole run.
diagnose::Cost cost_of(const Evidence& of, double ns, double doubt_ns);

using Cause = void (*)(const Evidence&, diagnose::Findings&);

}  // namespace tprof::why
