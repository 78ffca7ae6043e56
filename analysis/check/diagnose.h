// Diagnoses a job: collects, explains and sorts the findings.
#pragma once

#include <vector>

#include "check/diagnosis.h"

namespace tprof::check {

// The verdict on a communicator: did its ranks issue the same collectives?
enum class Verdict { same, same_of_those_seen, not_as_far, different };

struct CommunicatorVerdict : Communicator {
  std::uint64_t collectives = 0;  // the number that the largest group issued
  std::uint64_t fewest = 0;       // that a rank issued
  std::uint64_t most = 0;
  Verdict verdict = Verdict::same;
  bool pairs_differ = false;  // sends and receives don't match

  bool cleared() const { return verdict <= Verdict::same_of_those_seen; }
  // Adds the figures of another one, and the worse of the two verdicts.
  void add(const CommunicatorVerdict& more);
};

struct Diagnosed {
  const job::Job* job = nullptr;
  std::vector<CommunicatorVerdict> communicators;
  Findings findings;  // the worst first
};

// Reads lines if the options say so. `arrivals`: those of all lines, if the caller has them.
Diagnosed diagnose(const run::Lines& lines, const Options& options,
                   std::shared_ptr<const Arrivals> arrivals = nullptr);
Diagnosed diagnose(const job::Job& job, const read::Traces& traces, const Options& options);

// True if every process closed or was recovered, and no finding is an error (except that ranks did
// different things), a kill at work, or an empty count.
bool complete(const job::Job& job, const Findings& findings);

}  // namespace tprof::check
