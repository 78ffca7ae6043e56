#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/screen.h"
#include "read/error.h"
#include "report/diff.h"

namespace tprof::cli {

int diff_runs(const Options& o) {
  std::vector<diff::Rule> rules;
  for (const std::string& list : o.fail_on) {
    for (const diff::Rule& rule : diff::rules_of(list)) rules.push_back(rule);
  }
  const filter::Filter only = filter::parsed(o.only);
  if (o.no_lines && (only.steps || !only.sizes.empty() || !only.phases.empty())) {
    throw read::BadInput("--no-lines: not with --steps, --sizes and --phase, which lines tell");
  }
  read::Traces traces_a = load(read::trace_files({o.run_a}));
  read::Traces traces_b = load(read::trace_files({o.run_b}));
  const job::Job job_a = job::one_job(traces_a, {});
  const job::Job job_b = job::one_job(traces_b, {});
  const diagnose::Findings findings_a = findings_of(job_a, traces_a, only.words);
  const diagnose::Findings findings_b = findings_of(job_b, traces_b, only.words);
  const filter::Needs needs{.steps = !o.no_lines};
  const filter::Selection asked_a(lines_of(job_a, traces_a), only, needs);
  const filter::Selection asked_b(lines_of(job_b, traces_b), only, needs);
  const diff::Run a = diff::look_at(asked_a, findings_a, o.run_a, !o.no_lines);
  const diff::Run b = diff::look_at(asked_b, findings_b, o.run_b, !o.no_lines);
  const diff::Diff found = diff::compare(a, b);
  const diff::Judgement judgement = diff::judge(rules, found);
  show(o.json ? report::to_json(a, b, found, judgement)
              : report::to_text(a, b, found, judgement, columns_of_terminal().value_or(SIZE_MAX)),
       o.json);
  if (!judgement.failed.empty()) return kFinding;
  if (judgement.unknown.empty()) return kOk;
  throw read::BadInput(fmt::format("--fail-on: nothing can be said of {}: {}",
                                   fmt::join(judgement.unknown, ", "),
                                   fmt::join(judgement.why, "; ")));
}

}  // namespace tprof::cli
