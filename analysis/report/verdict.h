// Sums up a job in one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "check/diagnose.h"
#include "check/lateness.h"

namespace tprof::report {

struct JobVerdict {
  std::string text;
  // "ok", or the severity of the verdict's finding.
  std::string severity = "ok";
  std::optional<std::size_t> finding{};  // index of its finding
};

// Facts besides the findings.
struct Known {
  std::optional<std::int64_t> step_ns{};  // the mean
  bool whole_steps = true;                // else each may be a micro-batch
  std::optional<double> exposed_share{};  // of the steps
  bool timed = false;                     // calls were timed on the device
  std::string why_not{};                  // a sentence: why causes can't be known; empty: they can
  bool looked_for = true;                 // a replay was possible
  std::uint64_t copies = 0;
  const check::Lateness* late = nullptr;  // null: unknown
};

// The first that applies: a finding that keeps the job from going on; an error; some ranks ended; a
// stuck job with ranks that are behind; the costliest finding; a rank that the others waited for
// (before the costliest finding, if there are no device times and the wait was longer); a warning;
// a stuck job; unclosed ranks; nothing is wrong.
JobVerdict verdict_of(const check::Diagnosed& said, const Known& known);

// True for a note about how ranks ended, which comes before notes about lost time.
bool notes_the_end(const check::Finding& finding);

}  // namespace tprof::report
