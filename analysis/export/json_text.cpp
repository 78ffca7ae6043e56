#include "export/json_text.h"

#include <nlohmann/json.hpp>

namespace tprof::trace_export {

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace tprof::trace_export
