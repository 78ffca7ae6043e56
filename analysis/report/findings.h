// Findings, and which filters are on, as text for people and as JSON for programs: alike in all
// commands.
#pragma once

#include <string>
#include <vector>

#include "check/finding.h"
#include "filter/filter.h"
#include "report/table.h"

namespace tprof::report {

// `full`: with its place and the evidence. `brief`: in a list under a heading.
enum class Detail { full, brief };

// Returns "error: …", with what to do next below it.
std::string to_text(const check::Finding& finding, Detail detail);
Json to_json(const check::Findings& findings, Detail detail);

std::string next_of(const check::Finding& finding);  // what to do; empty: not known

// Returns {"ranks": "0-3", "steps": "10-", "notes": [...]}, with those that are given.
Json only_json(const filter::Words& only, const std::vector<std::string>& notes);

// Returns a line for the filters, and one for each note, each with that before it; empty: none are
// on.
std::string only_text(const filter::Words& only, const std::vector<std::string>& notes,
                      const std::string& before);

}  // namespace tprof::report
