// Says in one sentence what is wrong with a job, or that nothing is.
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
  // "ok" if nothing is worse than a note, or the severity of the finding that it is about.
  std::string severity = "ok";
  std::optional<std::size_t> finding{};  // its place among the findings
};

// Facts beside the findings.
struct Known {
  std::optional<std::int64_t> step_ns{};  // the mean
  bool whole_steps = true;                // else it may be a micro-batch of one
  std::optional<double> exposed_share{};  // of the steps
  bool timed = false;                     // calls were timed on the device
  bool causes = true;                     // devices were followed, so these may be known
  bool looked_for = true;                 // there was a replay to look for them in
  std::uint64_t copies = 0;
  const check::Lateness* late = nullptr;  // null: not known
};

// The first finding that keeps the job from going on; else the first error; else that ranks ended,
// but not all of them; else that a job stands in which ranks are not equally far; else the finding
// that costs most; else a rank that the others waited for, also if nothing was timed on devices and
// it was waited for longer than that costs; else the first warning; else that a job stands, that
// ranks did not close, or that nothing is wrong.
JobVerdict verdict_of(const check::Diagnosed& said, const Known& known);

// True if it only notes how ranks ended: that is told before the notes of what costs time.
bool notes_the_end(const check::Finding& finding);

}  // namespace tprof::report
