// What `tprof check` finds in a job.
#pragma once

#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/problem.h"
#include "match/jobs.h"
#include "read/folder.h"

namespace tprof::diagnose {

struct Checked {
  const match::Job* job = nullptr;
  std::vector<Communicator> communicators;
  std::vector<Agreement> agreements;  // of each
  std::vector<Problem> findings;      // the worst first

  bool healthy() const;  // no finding is more than a note
};

struct CheckOptions {
  bool read_lines = true;  // else only what the ledgers tell
};

Checked check(const match::Job& job, const read::Traces& traces, const CheckOptions& options);

}  // namespace tprof::diagnose
