// Findings as text for people and as JSON for programs, alike in all commands.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "check/finding.h"

namespace tprof::report {

// `full`: with its place and the evidence. `brief`: in a list under a heading.
enum class Detail { full, brief };

// Returns "error: …", with what to do next below it.
std::string to_text(const diagnose::Finding& finding, Detail detail);
nlohmann::ordered_json to_json(const diagnose::Findings& findings, Detail detail);

std::string next_of(const diagnose::Finding& finding);  // what to do; empty: not known

// Returns null for empty text, which means that the field is not known.
nlohmann::ordered_json or_null(const std::string& text);

}  // namespace tprof::report
