// Returns the name of a C++ function without its arguments, and any other name as it stands.
#pragma once

#include <string>

namespace tprof::symbols {

std::string readable(const std::string& symbol);

}  // namespace tprof::symbols
