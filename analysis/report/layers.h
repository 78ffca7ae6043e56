// The data that each layer moves, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "report/findings.h"
#include "stats/layers.h"

namespace tprof::report {

// Returns why there are none, as a sentence without its full stop.
std::string why_none(const stats::Layers& layers);

std::string layer_table(const stats::Layers& layers);
nlohmann::ordered_json to_json(const stats::Layers& layers);

}  // namespace tprof::report
