#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/screen.h"
#include "replay/report.h"

namespace tprof::cli {

int replay(const Options& o) {
  const filter::Filter only = filter::parsed(o.only);
  read::Traces traces = load(read::trace_files(o.paths));
  const job::Job job = job::one_job(traces, o.choice);
  const filter::Selection asked(lines_of(job, traces), only, {});
  replay::Plan plan = replay::plan(asked.lines());
  plan.only = asked.words();
  plan.notes = asked.notes();
  const replay::Launch launch{.mpi = o.mpi};
  show(o.json
           ? replay::to_json(asked.job(), plan, launch)
           : replay::to_text(asked.job(), plan, launch, columns_of_terminal().value_or(SIZE_MAX)),
       o.json);
  traces.skipped.insert(traces.skipped.end(), plan.unreadable.begin(), plan.unreadable.end());
  say_findings(job, traces);
  return std::ranges::any_of(traces.skipped, &read::Skipped::unreadable) ? kFinding : kOk;
}

}  // namespace tprof::cli
