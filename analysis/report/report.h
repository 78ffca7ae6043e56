// The output of `tprof summary` and `tprof check`: text for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "report/by.h"
#include "summary/summary.h"

namespace tprof::report {

struct TextOptions {
  By by = By::size;
  bool per_rank = false;
  std::string next;  // the command to run now
};
std::string to_text(const stats::Summary& summary, const TextOptions& options);
std::string to_json(const stats::Summary& summary);

// Returns the first lines of the summary: what ran, where, on which libraries.
std::string header_text(const stats::Summary& summary);

// Returns "4 processes", or "4 ranks in 1 process" if one holds several.
std::string how_many(const std::vector<const read::Process*>& processes);

// `only` has the filters that this was diagnosed with.
std::string to_text(const diagnose::Diagnosed& said, const filter::Words& only = {});
std::string to_json(const diagnose::Diagnosed& said, const filter::Words& only = {});

}  // namespace tprof::report
