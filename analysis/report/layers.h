// The data that each layer moves, as text for people and as JSON for programs.
#pragma once

#include <vector>

#include "report/section.h"
#include "stats/layers.h"

namespace tprof::report {

std::vector<Section> sections_of(const stats::Layers& layers, For who);

}  // namespace tprof::report
