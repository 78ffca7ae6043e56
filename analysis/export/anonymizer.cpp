#include "export/anonymizer.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "export/pen.h"

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

using simdjson::ondemand::json_type;

// Appends a number, true, false or null unchanged.
void put_token(std::string_view token, std::string& out) {
  token = read::trimmed(token);
  const bool number = !token.empty() && (token[0] == '-' || std::isdigit(token[0]) != 0) &&
                      token.find_first_not_of("0123456789+-.eE") == token.npos;
  if (!number && token != "true" && token != "false" && token != "null") throw not_an_object();
  out += token;
}

void put_string(std::string_view text, std::string& out) {
  ((out += '"') += text) += '"';
}

}  // namespace

const Field* Field::find(std::string_view of) const {
  const auto found = std::ranges::find(fields, of, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

Anonymizer::Anonymizer() {
  const Json schema = Json::parse(kLineSchema);
  const Json every_line = {{"properties", schema.at("properties")}};
  each(schema, "oneOf", [&](const auto&, const Json& rule) {
    Field line;
    add(schema, every_line, line);
    add(schema, rule, line);
    // Metadata lines have no category, and those of other tools any.
    const Field& category = *line.find("cat");
    if (category.pattern) return;
    const Field& kind = category.words.empty() ? *line.find("name") : category;
    for (const std::string& word : kind.words) lines_[{category.words.empty(), word}] = line;
  });
}

// Nothing in the result has to be escaped.
std::string Anonymizer::shown(std::string_view text, const Field& field) {
  if (std::ranges::find(field.words, text) != field.words.end()) return std::string(text);
  if (!field.names.empty()) return names_.shown(field.names, text);
  if (!field.pattern) return field.words.empty() ? names_.of("text", text) : "unknown";
  constexpr std::size_t kLongest = 256;  // a regex walks by recursion
  const bool as_told =
      text.size() <= kLongest && std::regex_match(text.begin(), text.end(), *field.pattern);
  return as_told ? std::string(text) : names_.of("id", text);
}

void Anonymizer::put_value(simdjson::ondemand::value value, const Field& field, std::string& out) {
  const json_type type = value_of(value.type());
  if (type == json_type::array) {
    static const Field kUnknown;
    const char* separator = "[";
    for (auto element : value_of(value.get_array())) {
      out += std::exchange(separator, ",");
      put_value(value_of(element), field.items.empty() ? kUnknown : field.items[0], out);
    }
    out += *separator == '[' ? "[]" : "]";
  } else if (type == json_type::object) {
    put_object(value_of(value.get_object()), field, out);
  } else if (type != json_type::string) {
    put_token(value.raw_json_token(), out);
  } else if (field.names == "nothing") {  // in a copy
    out += "null";
  } else {
    put_string(shown(value_of(value.get_string()), field), out);
  }
}

// Returns what stands for a key; empty if it is left out.
std::string Anonymizer::key_of(std::string_view key, const Field& field) {
  if (field.names == "setting") return is_setting(key) ? std::string(key) : "";
  if (field.names == "counter") return names_.shown(field.names, key);
  return field.find(key) != nullptr ? std::string(key) : "";
}

void Anonymizer::put_object(simdjson::ondemand::object object, const Field& field,
                            std::string& out) {
  const char* separator = "{";
  for (auto member : object) {
    const std::string_view key = value_of(member.unescaped_key());
    const std::string shown_key = key_of(key, field);
    auto value = value_of(member.value());
    std::string_view setting;
    const bool is_text =
        field.names == "setting" && value.get_string().get(setting) == simdjson::SUCCESS;
    if (shown_key.empty() || (field.names == "setting" && !is_text)) continue;
    out += std::exchange(separator, ",");
    put_string(shown_key, out);
    out += ':';
    if (is_text) {
      put_string(setting_value(names_, key, setting), out);
    } else if (const Field* inner = field.find(key)) {
      put_value(value, *inner, out);
    } else {
      put_token(value.raw_json_token(), out);
    }
  }
  out += *separator == '{' ? "{}" : "}";
}

bool Anonymizer::edit(const read::Line& line, std::string& out) {
  const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                            line.text.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document document;
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  std::string name;
  std::string category;
  for (auto member : value_of(document.get_object())) {
    const std::string_view key = value_of(member.unescaped_key());
    auto value = value_of(member.value());
    if (key == "args") break;
    if (key == "name") name = value_of(value.get_string());
    if (key == "cat") category = value_of(value.get_string());
  }
  const auto fields = lines_.find({category.empty(), category.empty() ? name : category});
  if (fields == lines_.end()) return false;
  document.rewind();
  put_object(value_of(document.get_object()), fields->second, out);
  return true;
}

}  // namespace tprof::trace_export
