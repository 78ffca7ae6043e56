// Says which filters are on.
#pragma once

#include <string>
#include <vector>

#include "filter/filter.h"
#include "report/json.h"

namespace tprof::report {

// Returns {"ranks": "0-3", "steps": "10-", "notes": [...]}, with those that are given.
Json only_json(const filter::Words& only, const std::vector<std::string>& notes);

// Returns a line for the filters, and one for each note, each with that before it; empty: none are
// on.
std::string only_text(const filter::Words& only, const std::vector<std::string>& notes,
                      const std::string& before);

}  // namespace tprof::report
