// Findings and filters as text for people and as JSON for programs, the same in all commands.
#pragma once

#include <string>
#include <vector>

#include "check/finding.h"
#include "filter/filter.h"
#include "report/table.h"

namespace tprof::report {

// `full`: with place and evidence. `brief`: for a list under a heading.
enum class Detail { full, brief };

// Returns "error: …", with advice below it.
std::string to_text(const check::Finding& finding, Detail detail);
Json to_json(const check::Findings& findings, Detail detail);

std::string next_of(const check::Finding& finding);  // advice; empty: none

// Returns {"ranks": "0-3", "steps": "10-", "notes": [...]} with the given filters.
Json only_json(const filter::Words& only, const std::vector<std::string>& notes);

// Returns a line for the filters and one for each note, each prefixed by `before`; empty without
// filters.
std::string only_text(const filter::Words& only, const std::vector<std::string>& notes,
                      const std::string& before);

}  // namespace tprof::report
