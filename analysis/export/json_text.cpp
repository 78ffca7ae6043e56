#include "export/json_text.h"

#include <nlohmann/json.hpp>

namespace tprof::trace_export {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace tprof::trace_export
