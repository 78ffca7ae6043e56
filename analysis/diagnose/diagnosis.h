// What a diagnosis is, and what it looks at. A new one is a file that defines one, and a row in
// list.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collect/lines.h"
#include "diagnose/agreement.h"
#include "diagnose/finding.h"
#include "diagnose/meetings.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::diagnose {

// Which command asks; the values are bits.
enum Asked : unsigned { kCheck = 1, kSummary = 2, kDoctor = 4 };

struct Options {
  Asked asked = kCheck;
  bool whole_job = true;                         // ranks that are not there are missing
  bool read_lines = true;                        // else only what the ledgers tell
  std::int64_t stuck_after_ns = 30'000'000'000;  // of a process that still runs
  std::function<void(std::size_t)> progress = [](std::size_t) {};  // files read, from any thread
};

// The job that is looked at, and what was read of it.
struct Case {
  const job::Job& job;
  const read::Traces& traces;
  const Options& options;
  collect::Lines lines{};                // of no rank where they were not to be read
  std::unique_ptr<Meetings> meetings{};  // null: the same
  std::vector<read::Skipped> skipped;    // files that are not looked at
  std::vector<Communicator> communicators{};
  std::vector<Agreement> agreements{};  // of each
};

struct Diagnosis {
  unsigned asked;  // the commands whose users it is for
  // Appends to what the diagnoses before it have found.
  void (*reduce)(const Case&, Findings&);
  // The collectors whose lines it needs (lines.h): `collect<Mine, Another>`. Null: the ledgers are
  // enough.
  void (*collect)(const read::Process& rank, collect::Collectors&) = nullptr;
  // Nothing is to be found without lines. Others say less where there are none.
  bool needs_lines = false;
};

std::span<const Diagnosis* const> diagnoses();  // list.cpp

// Says an effect with its cause, or not at all, and leads with who ended first.
void explain(const Case& c, Findings& findings);

}  // namespace tprof::diagnose
