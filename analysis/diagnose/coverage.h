// What it means for what was seen that a library, a tool or a setting is in a process, with the way
// out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "interpose/format/settings.h"

namespace tprof::diagnose {

using read::Variables;

// Whether an opt-in (TPROF_DRIVER, TPROF_DLSYM) is on where these variables are set.
bool in_force(const Variables& set, Setting opt_in);

// What a kind of library or tool in a process means (kinds: interpose/format/coverage.h).
struct Meaning {
  Severity severity = Severity::note;
  std::string_view text;  // goes behind "X is loaded: " or the like; empty: nothing to say
  std::string next;       // never what is in force
};
// `all_set`: the variables of each process that holds it.
Meaning meaning_of(std::string_view kind, const std::vector<const Variables*>& all_set);

// Settings that do not do what was meant: unknown names and bad values, among all variables.
void settings(const Variables& variables, const Processes& where_found, Findings& found);

}  // namespace tprof::diagnose
