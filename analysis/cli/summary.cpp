#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "cli/commands.h"
#include "cli/input.h"
#include "stats/summary.h"

namespace tprof::cli {

int summary(const SummaryOptions& o) {
  const read::Traces traces = load(read::trace_files(o.paths));
  const match::Job job = one_job(traces, o.choice);
  const report::Summary s = report::summarise(job, traces, {.read_lines = o.lines});
  if (o.json) {
    fmt::print("{}", report::to_json(s));
  } else {
    const bool merged = traces.traces.size() == 1 && traces.traces[0].merged;
    const std::string next = merged ? "open " + quoted(o.paths) + " in https://ui.perfetto.dev"
                                    : "tprof merge " + quoted(o.paths) + typed(o.choice) +
                                          " -o trace.json.gz  (one timeline of all ranks)";
    fmt::print("{}", report::to_text(s, {.by = o.by, .per_rank = o.per_rank, .next = next}));
  }
  return s.complete ? kOk : kFinding;
}

}  // namespace tprof::cli
