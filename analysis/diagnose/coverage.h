// What the traced processes could not see, and what stood beside them: from what they noted of
// themselves to findings with the way out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/problem.h"
#include "interpose/format/settings.h"
#include "job/jobs.h"

namespace tprof::diagnose {

using Variables = std::map<std::string, std::string>;

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
// `ranks`: where they were found.
void settings(const Variables& variables, const std::vector<std::int64_t>& ranks,
              std::vector<Problem>& found);

// All of a job.
void coverage(const match::Job& job, std::vector<Problem>& found);

// Of that, calls on communicators that can't be compared with those of other ranks.
void not_compared(const match::Job& job, std::vector<Problem>& found);

}  // namespace tprof::diagnose
