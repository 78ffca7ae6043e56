// All that `tprof report` tells of a job, before it is text or a page.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "report/verdict.h"
#include "stats/op_times.h"
#include "stats/timeline.h"
#include "summary/summary.h"
#include "why/why.h"

namespace tprof::page {

// A step is as long as for its ranks on average: on their devices where these were followed, else
// by the hosts that don't run ahead of the others.
struct StepLength {
  double sum_ns = 0;
  std::int64_t ranks = 0;  // 0: not known
  double longest_ns = 0;
  const read::Process* longest = nullptr;  // the rank that it takes longest

  std::optional<double> of_job_ns{};  // why::Times::length

  void add(const read::Process* rank, double ns);
  std::int64_t ns() const;  // of the job; where only hosts tell, their mean
};

struct Gathered {
  Gathered() = default;
  Gathered(const Gathered&) = delete;  // its parts refer to each other
  Gathered& operator=(const Gathered&) = delete;

  stats::Summary summary;               // of the whole job
  std::optional<stats::Summary> asked;  // of the calls that were asked for; nullopt: of all
  diagnose::Diagnosed said;
  std::optional<align::Clocks> clocks;
  stats::Spectra spectra;
  std::vector<StepLength> lengths;  // of each of summary.found.steps
  std::vector<stats::Timeline> timelines;
  why::Why why;

  const stats::Summary& calls() const { return asked ? *asked : summary; }
  bool on_device() const { return summary.lateness && summary.lateness->on_device; }
};

// Reads the lines twice: for what needs no steps, and for the rest. Those of the ranks in timelines
// once more, where the devices' times have to say which steps these are of.
void gather(const run::Lines& lines, Gathered& to);

// Puts what was asked for in place of the figures of calls: buckets, operations, how long they
// took, and communicators. Why the job is slow, its steps and who came late stay those of the whole
// job, as other calls make them. The selection has to stay.
void gather_calls(const filter::Selection& asked, Gathered& to);
inline constexpr const char* kOfCalls[] = {"buckets", "per_rank", "ops", "hist", "comms"};

// Steps whose length is told: all but the first of several, in which programs warm up.
std::vector<std::size_t> warm_steps(const Gathered& g);  // places in `lengths`, the shortest first
report::Known known_of(const Gathered& g);

}  // namespace tprof::page
