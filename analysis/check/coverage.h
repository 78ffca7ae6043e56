// Explains how a library, tool or setting limits what was seen, and what to do about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/finding.h"
#include "interpose/format/settings.h"

namespace tprof::check {

using read::Variables;

// True if these variables turn an opt-in (TPROF_DRIVER, TPROF_DLSYM) on.
bool in_force(const Variables& set, Setting opt_in);

// A library or tool in a process that limits what was seen, and how.
struct Limit {
  Kind kind;
  std::string set;  // "A=1 and B=1": the opt-ins that would show it and are off
};
// Returns nullopt if a note (interpose/format/coverage.h) limits nothing. `all_set`: the variables
// of each process with the note.
std::optional<Limit> limit_of(std::string_view note, const std::vector<const Variables*>& all_set);

// Reports unknown setting names and bad values.
void settings(const Variables& variables, const Processes& where_found, Findings& found);

}  // namespace tprof::check
