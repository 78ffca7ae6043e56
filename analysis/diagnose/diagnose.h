// What is to be said of a job: collect, reduce, explain, order.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

// Whether the ranks of a communicator did the same.
enum class Verdict { same, same_of_those_seen, not_as_far, different };

struct CommunicatorVerdict : Communicator {
  std::uint64_t collectives = 0;  // of most members
  Verdict verdict = Verdict::same;

  bool cleared() const { return verdict <= Verdict::same_of_those_seen; }
};

struct Diagnosed {
  const job::Job* job = nullptr;
  std::vector<CommunicatorVerdict> communicators;
  Findings findings;  // the worst first
};

Diagnosed diagnose(const job::Job& job, const read::Traces& traces, const Options& options);

// Every process closed, or ended as one may that is not asked to, and no finding says that counts
// are missing.
bool complete(const job::Job& job, const Findings& findings);

}  // namespace tprof::diagnose
