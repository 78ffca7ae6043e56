// Explains how a library, a tool or a setting in a process limits what was seen, and what to do
// about it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "interpose/format/settings.h"

namespace tprof::diagnose {

using read::Variables;

// True if an opt-in (TPROF_DRIVER, TPROF_DLSYM) is on with these variables.
bool in_force(const Variables& set, Setting opt_in);

// The meaning of a kind of library or tool in a process (kinds: interpose/format/coverage.h).
struct Meaning {
  Severity severity = Severity::note;
  std::string_view text;  // follows "X is loaded: " or the like; empty: nothing to say
  std::string next;       // never advises a setting that is in force already
};
// `all_set`: the variables of each process that holds it.
Meaning meaning_of(std::string_view kind, const std::vector<const Variables*>& all_set);

// Reports settings that do not do what was meant: unknown names and bad values, among all
// variables.
void settings(const Variables& variables, const Processes& where_found, Findings& found);

}  // namespace tprof::diagnose
