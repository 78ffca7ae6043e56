// The output of `tprof summary`, `tprof check` and `tprof diff`: text for people, JSON for
// programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "check/diagnose.h"
#include "diff/compare.h"
#include "report/views.h"
#include "summary/summary.h"

namespace tprof::report {

struct TextOptions {
  By by = By::none;      // the first screen: the largest operations only
  bool verbose = false;  // each operation, libraries and settings
  bool per_rank = false;
  std::size_t width = SIZE_MAX;     // of a table's lines, if possible
  bool breaks = false;              // long text continues on the next line
  std::string verdict{};            // a verdict known from elsewhere
  std::vector<std::string> next{};  // commands to run next
};
std::string to_text(const tables::Summary& summary, const TextOptions& options);
// `lines`: includes everything that needs event lines.
std::string to_json(const tables::Summary& summary, By by = By::none, bool lines = false);

// Names the run and the filters.
std::string heading(const tables::Summary& summary);
// Returns command, libraries and settings.
std::string details(const tables::Summary& summary);
// Says in a sentence or two what moved, and which share of the run that took.
std::string headline(const tables::Summary& summary);

// Returns "4 processes", or "4 ranks in 1 process" if one holds several.
std::string how_many(const std::vector<const read::Process*>& processes);

// `only`: the filters of the diagnosis.
std::string to_text(const check::Diagnosed& said, const filter::Words& only = {});
std::string to_json(const check::Diagnosed& said, const filter::Words& only = {});

// `width`: of tables' lines, if possible.
std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement, std::size_t width);
std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);

}  // namespace tprof::report
