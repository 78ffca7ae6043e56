#include "export/contract.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tprof::trace_export {

extern const std::string_view kLineSchema;  // line_schema.cpp.in

namespace {

using Json = nlohmann::ordered_json;

template <typename F>
void each(const Json& rule, std::string_view key, F&& f) {
  const auto found = rule.find(key);
  if (found == rule.end()) return;
  for (const auto& [inner, value] : found->items()) f(inner, value);
}

const Json& referred(const Json& schema, const Json& rule) {
  const std::string& to = rule.at("$ref").get_ref<const std::string&>();
  return schema.at("$defs").at(to.substr(to.rfind('/') + 1));
}

Field& child(std::vector<Field>& fields, const std::string& key) {
  const auto known = std::ranges::find(fields, key, &Field::key);
  if (known != fields.end()) return *known;
  fields.push_back({.key = key});
  return fields.back();
}

// Adds what a rule of the schema says. Conditions (`if`, `not`) forbid, and add nothing.
void add(const Json& schema, const Json& rule, Field& field) {
  if (rule.contains("$ref")) add(schema, referred(schema, rule), field);
  for (const char* alternatives : {"anyOf", "oneOf"}) {
    each(rule, alternatives, [&](const auto&, const Json& one) { add(schema, one, field); });
  }
  const auto add_word = [&](const Json& value) {
    if (value.is_string()) field.words.push_back(value.get<std::string>());
  };
  if (rule.contains("const")) add_word(rule.at("const"));
  each(rule, "enum", [&](const auto&, const Json& value) { add_word(value); });
  if (rule.contains("pattern")) field.pattern = rule.at("pattern").get<std::string>();
  if (rule.contains("names")) field.names = rule.at("names").get<std::string>();
  each(rule, "properties", [&](const std::string& key, const Json& property) {
    add(schema, property, child(field.fields, key));
  });
  if (rule.contains("items")) add(schema, rule.at("items"), child(field.items, ""));
}

}  // namespace

const Field* Field::find(std::string_view of) const {
  const auto found = std::ranges::find(fields, of, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

Contract::Contract() {
  const Json schema = Json::parse(kLineSchema);
  const Json every_line = {{"properties", schema.at("properties")}};
  each(schema, "oneOf", [&](const auto&, const Json& rule) {
    add(schema, every_line, lines_.emplace_back());
    add(schema, rule, lines_.back());
  });
  for (const Field& line : lines_) {
    const Field& category = *line.find("cat");
    for (const std::string& word : category.words) by_category_[word] = &line;
    if (!category.words.empty() || category.pattern) continue;  // the latter: another tool's
    for (const std::string& word : line.find("name")->words) by_name_[word] = &line;
  }
}

const Field* Contract::line(std::string_view category, std::string_view name) const {
  const auto& lines = category.empty() ? by_name_ : by_category_;
  const auto found = lines.find(category.empty() ? name : category);
  return found == lines.end() ? nullptr : found->second;
}

}  // namespace tprof::trace_export
