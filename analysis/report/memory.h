// Memory that the program had allocated, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "stats/memory.h"

namespace tprof::report {

// Empty if there is nothing.
std::string memory_table(const stats::Memory& memory);
nlohmann::ordered_json to_json(const stats::Memory& memory);

}  // namespace tprof::report
