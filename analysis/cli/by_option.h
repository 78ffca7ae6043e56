// The names of the tables of `summary --by`, as an option takes them.
#pragma once

#include <string>

namespace tprof::cli {

// "size|op|comm|..."
std::string names_of_by();
// Says what the names don't tell: "range: NVTX; ..."
std::string about_by();

// Replaces the name of a table by its number, as CLI11 reads an enum. Returns what is wrong.
std::string to_by(std::string& name);

}  // namespace tprof::cli
