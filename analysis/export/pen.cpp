#include "export/pen.h"

#include <algorithm>

namespace tprof::trace_export {

void EventFields::read(std::string_view object) {
  clear();
  texts_.clear();
  simdjson::ondemand::document document;
  const simdjson::padded_string_view padded(object.data(), object.size(),
                                            object.size() + simdjson::SIMDJSON_PADDING);
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  for (auto field : value_of(document.get_object())) {
    const std::string_view key = value_of(field.escaped_key());
    // It could hide a field that has to change.
    if (key.find('\\') != key.npos) throw read::Malformed("expected a key without escapes");
    auto value = value_of(field.value());
    fields_.push_back({key, read::trimmed(value_of(simdjson::to_json_string(value)))});
  }
  const char* more = nullptr;
  if (document.current_location().get(more) == simdjson::SUCCESS) throw not_an_object();
}

std::size_t EventFields::find(std::string_view key) const {
  const auto found = std::ranges::find(fields_, key, &Field::key);
  if (found != fields_.end() && std::ranges::count(found, fields_.end(), key, &Field::key) != 1) {
    throw read::Malformed("\"" + std::string(key) + "\" stands twice");
  }
  return static_cast<std::size_t>(found - fields_.begin());
}

std::string_view EventFields::operator[](std::string_view key) const {
  const std::size_t at = find(key);
  return at == fields_.size() ? std::string_view() : fields_[at].value;
}

void EventFields::set(std::string_view key, std::string value) {
  const std::size_t at = find(key);
  if (at == fields_.size()) fields_.push_back({key, {}});
  fields_[at].value = texts_.emplace_back(std::move(value));
  if (fields_[at].value.empty()) fields_.erase(fields_.begin() + static_cast<std::ptrdiff_t>(at));
}

void EventFields::add(std::string text) {
  if (!text.empty()) fields_.push_back({"", texts_.emplace_back(std::move(text))});
}

std::string EventFields::text() const {
  std::string all;
  for (const Field& f : fields_) {
    if (!all.empty()) all += ',';
    if (!f.key.empty()) ((all += '"') += f.key) += "\":";
    all += f.value;
  }
  return all;
}

}  // namespace tprof::trace_export
