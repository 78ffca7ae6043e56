// What `tprof summary` and `tprof check` print: text for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "summary/summary.h"

namespace tprof::report {

enum class By { size, op, comm, dtype, range, phase, step, site, layer, rank };

struct TextOptions {
  By by = By::size;
  bool per_rank = false;
  std::string next;  // the command to run now
};
std::string to_text(const stats::Summary& summary, const TextOptions& options);
std::string to_json(const stats::Summary& summary);

// What ran, where, on which libraries: the first lines of the summary.
std::string header_text(const stats::Summary& summary);

// "4 processes"; "4 ranks in 1 process", where one holds several.
std::string how_many(const std::vector<const read::Process*>& processes);

std::string to_text(const diagnose::Diagnosed& said);
std::string to_json(const diagnose::Diagnosed& said);

}  // namespace tprof::report
