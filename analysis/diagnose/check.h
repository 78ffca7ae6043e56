// What `tprof check` finds in a job.
#pragma once

#include <functional>
#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/problem.h"
#include "job/jobs.h"
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
  bool read_lines = true;                        // else only what the ledgers tell
  std::int64_t stuck_after_ns = 30'000'000'000;  // of a process that still runs
  std::function<void(std::size_t)> progress = [](std::size_t) {};  // files read, from any thread
};

Checked check(const match::Job& job, const read::Traces& traces, const CheckOptions& options);

}  // namespace tprof::diagnose
