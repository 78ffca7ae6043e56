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
  bool verbose = false;  // each operation, and what ran on which libraries with which settings
  bool per_rank = false;
  std::size_t width = SIZE_MAX;     // of a line of a table, where its columns allow that
  bool breaks = false;              // its text goes on in the next line, where it has to
  std::string verdict{};            // one that is known beside the summary
  std::vector<std::string> next{};  // the commands to run now
};
std::string to_text(const tables::Summary& summary, const TextOptions& options);
// `lines`: with all that only event lines tell.
std::string to_json(const tables::Summary& summary, By by = By::none, bool lines = false);

// Returns which run this is, and what was asked for of it.
std::string heading(const tables::Summary& summary);
// Returns what ran, on which libraries, with which settings.
std::string details(const tables::Summary& summary);
// Returns in a sentence or two what moved, and which part of the run that took.
std::string headline(const tables::Summary& summary);

// Returns "4 processes", or "4 ranks in 1 process" if one holds several.
std::string how_many(const std::vector<const read::Process*>& processes);

// `only` has the filters that this was diagnosed with.
std::string to_text(const check::Diagnosed& said, const filter::Words& only = {});
std::string to_json(const check::Diagnosed& said, const filter::Words& only = {});

// `width`: of lines of tables, where that can be done.
std::string to_text(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement, std::size_t width);
std::string to_json(const diff::Run& a, const diff::Run& b, const diff::Diff& diff,
                    const diff::Judgement& judgement);

}  // namespace tprof::report
