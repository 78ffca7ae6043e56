#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "report/check.h"

namespace tprof::cli {

int check(const CheckOptions& o) {
  const read::Traces traces = load(read::trace_files(o.paths));
  const match::Job job = one_job(traces, o.choice);
  const diagnose::Checked checked = [&] {
    Progress progress("checking", traces.traces.size());
    return diagnose::check(job, traces,
                           {.read_lines = !o.no_lines,
                            .stuck_after_ns = std::llround(o.stuck_after_s * 1e9),
                            .progress = [&](std::size_t done) { progress(done); }});
  }();
  fmt::print("{}", o.json ? report::to_json(checked) : report::to_text(checked));
  return checked.healthy() ? kOk : kFinding;
}

}  // namespace tprof::cli
