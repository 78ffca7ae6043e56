// Says what processes answered, in words for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "control/request.h"
#include "control/targets.h"

namespace tprof::control {

bool is_well(const Target& target);

std::string line_of(const Request& request, const Target& target);
std::string json_of(const Request& request, const std::vector<Target>& targets);

}  // namespace tprof::control
