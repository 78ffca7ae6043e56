// The ranks that came last to collectives, as text for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "diagnose/lateness.h"
#include "steps/found.h"

namespace tprof::report {

std::string to_text(const diagnose::Lateness& lateness, const steps::Found& found);
nlohmann::ordered_json to_json(const diagnose::Lateness& lateness);

}  // namespace tprof::report
