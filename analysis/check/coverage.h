// Explains how a library, a tool or a setting in a process limits what was seen, and what to do
// about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/finding.h"
#include "interpose/format/settings.h"

namespace tprof::check {

using read::Variables;

// True if an opt-in (TPROF_DRIVER, TPROF_DLSYM) is on with these variables.
bool in_force(const Variables& set, Setting opt_in);

// A library or tool in a process that limits what was seen, and how.
struct Limit {
  Kind kind;
  std::string set;  // "A=1 and B=1": the opt-ins that let it be seen and are not in force
};
// Returns nullopt for a note (interpose/format/coverage.h) that limits nothing, with the variables
// of each process that holds it.
std::optional<Limit> limit_of(std::string_view note, const std::vector<const Variables*>& all_set);

// Reports settings that do not do what was meant: unknown names and bad values, among all
// variables.
void settings(const Variables& variables, const Processes& where_found, Findings& found);

}  // namespace tprof::check
