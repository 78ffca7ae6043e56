// JSON whose keys stay in the order in which they were put.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tprof::report {

using Json = nlohmann::ordered_json;

// Null for what is absent: empty text is a field that is not known.
inline Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// As it is printed. `indent` -1: in one line.
inline std::string printed(const Json& json, int indent = 1) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
