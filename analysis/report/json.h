// JSON whose keys stay in the order in which they were put.
#pragma once

#include <nlohmann/json.hpp>

namespace tprof::report {

using Json = nlohmann::ordered_json;

}  // namespace tprof::report
