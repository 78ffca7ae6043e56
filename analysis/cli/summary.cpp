#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/input.h"
#include "report/summary.h"

namespace tprof::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tprof summary tprof-traces/train-20260101-120000-0
  tprof summary DIR --per-rank --by dtype
  tprof summary merged.json.gz --json | jq .buckets.ALLGATHER
Exit code: 0 all ranks are there and closed, 1 not all of them, 2 unreadable input.)";

struct Options {
  std::vector<std::filesystem::path> paths;
  std::string run;
  bool json = false;
  bool per_rank = false;
  bool lines = false;
  report::By by = report::By::size;
};

int summary(const Options& o) {
  const read::Traces traces = load(read::trace_files(o.paths));
  const match::Job job = one_job(traces, o.run);
  const report::Summary s = report::summarise(job, traces, {.read_lines = o.lines});
  if (o.json) {
    fmt::print("{}", report::to_json(s));
  } else {
    const bool merged = traces.traces.size() == 1 && traces.traces[0].merged;
    const std::string next = merged ? "open " + quoted(o.paths) + " in https://ui.perfetto.dev"
                                    : "tprof merge " + quoted(o.paths) +
                                          " -o trace.json.gz  (one timeline of all ranks)";
    fmt::print("{}", report::to_text(s, {.by = o.by, .per_rank = o.per_rank, .next = next}));
  }
  return s.complete ? kOk : kFinding;
}

}  // namespace

Run add_summary(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("summary", "Totals of a run: what moved, where, how much");
  command->footer(kExamples);
  command->add_option("PATH", o->paths, "folder of rank files, rank files, or a merged trace")
      ->required();
  command->add_flag("--json", o->json, "for programs (schema tprof-summary/1)");
  command->add_flag("--per-rank", o->per_rank, "the buckets of every rank");
  const std::map<std::string, report::By> dimensions = {{"size", report::By::size},
                                                        {"op", report::By::op},
                                                        {"comm", report::By::comm},
                                                        {"dtype", report::By::dtype}};
  command->add_option("--by", o->by, "operations by size (default), op, comm or dtype")
      ->transform(CLI::CheckedTransformer(dimensions).description(""))
      ->option_text("WHAT");
  command->add_flag("--lines", o->lines,
                    "read event lines too: tells gathers of objects from those of tensors");
  command->add_option("--run", o->run, "which run, where the files are of several")
      ->option_text("ID");
  return [o, command] { return command->parsed() ? summary(*o) : -1; };
}

}  // namespace tprof::cli
