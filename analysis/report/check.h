// What `tprof check` prints: text for people, JSON (schema tprof-check/1) for programs.
#pragma once

#include <string>

#include "diagnose/check.h"

namespace tprof::report {

std::string to_text(const diagnose::Checked& checked);
std::string to_json(const diagnose::Checked& checked);

}  // namespace tprof::report
