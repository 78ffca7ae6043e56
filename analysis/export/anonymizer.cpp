#include "export/anonymizer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>

#include "export/pen.h"
#include "interpose/format/memory.h"
#include "interpose/format/settings.h"
#include "interpose/format/step_mark.h"
#include "read/node_metrics.h"
#include "read/window_files.h"
#include "tables/comms.h"
#include "tables/rank_calls.h"

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

// Rejects any text that is longer than a sensible match: a regex walks by recursion.
bool matches(std::string_view text, const std::regex& pattern) {
  constexpr std::size_t kLongest = 256;
  return text.size() <= kLongest && std::regex_match(text.begin(), text.end(), pattern);
}

// Kinds of names that are kept if they match.
const std::regex* kept_of(std::string_view kind) {
  static const std::map<std::string_view, std::regex> kKept = {
      // In a merged trace "AllGather 32 KiB"
      {"function",
       std::regex(
           "_{0,2}(nccl|cu)[A-Za-z0-9_]{0,46}|"
           "(AllGather|ReduceScatter|AllReduce|Broadcast|Bcast|Reduce|AlltoAll|Gather|Scatter|"
           "Send|Recv|PutSignal|Signal|WaitSignal|EpDispatch|EpCombine|EpComplete|Group|"
           "H2D|D2H|D2D|H2H|Managed)"
           "( [0-9]+([.][0-9]{2})? ([KMGTPE]i)?B)?")},
      {"thread", std::regex("pt_(autograd_[0-9]{1,5}|data_[a-z]{0,9})")},
      {"domain", std::regex("tprof|NCCL")},
      {"category", std::regex("phase|step")},
      {"filters", std::regex("only [A-Za-z0-9_*,; -]{1,200}")},
      {"lane", std::regex("thread_name|thread_sort_index|exposed|bytes/s|step -?[0-9]+")},
      {"version", std::regex("[0-9][A-Za-z0-9.+-]{0,47}")},
      {"id", std::regex("[0-9a-fA-F]{0,48}")},
      {"file", std::regex(R"(rank-[0-9]+(\.r[0-9]+)?\.json(\.gz)?)")},
      {"a library's file", std::regex(R"(lib[A-Za-z0-9._+-]*\.so[A-Za-z0-9._+-]*)")},
      {"a process", std::regex("rank [0-9]+(, pid [0-9]+)?|pid [0-9]+")},
      // "0-7,64", "16384" and "64MiB"
      {"numbers", std::regex("([0-9]+(-[0-9]+)?[KMGT]?(iB|B)?(,(?!$)|$))+")},
      {"setting", std::regex("(TPROF|NCCL|CUDA)_[A-Za-z0-9_]{0,42}")}};
  const auto found = kKept.find(kind);
  return found == kKept.end() ? nullptr : &found->second;
}

// True if a counter's name, or the key of a value, is the library's own, and so no secret.
bool is_memory_word(std::string_view word) {
  if (word == kMemoryLane) return true;
  for (std::uint8_t place = 0; place < kMemoryPlaces; ++place) {
    char room[16];
    if (word == memory_key(place, room)) return true;
  }
  return false;
}

bool is_kept(std::string_view kind, std::string_view name) {
  if (kind == "counter") return is_metric_word(name) || is_memory_word(name);
  const std::regex* kept = kept_of(kind);
  return kept != nullptr && matches(name, *kept);
}

// Turns "/home/me/env/lib/libnccl.so.2" into "folder-1/libnccl.so.2": the name of a library is
// useful, its folder says who you are.
std::string library_path(Pseudonyms& names, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view base = path.substr(slash + 1);  // with npos all of it
  std::string shown =
      is_kept("a library's file", base) ? std::string(base) : names.of("file", base);
  if (slash == std::string_view::npos) return shown;
  return names.of("folder", path.substr(0, slash)) + "/" + shown;
}

// Keeps "rank 3", "pid 47" and "rank 3, pid 47". The host in "rank 3 on node7" gets a pseudonym.
std::string process_title(Pseudonyms& names, std::string_view title) {
  const std::size_t on = title.find(" on ");
  const std::string_view process = title.substr(0, on);
  if (!is_kept("a process", process)) return names.of("process", title);
  std::string shown(process);
  if (on != std::string_view::npos) shown += " on " + names.of("host", title.substr(on + 4));
  return shown;
}

// Names the file of a window that is missing; one that is here is in its rank file's copy.
std::string window_file(Pseudonyms& names, std::string_view file) {
  const std::string stem = read::stem_of_rank_file(std::string(file));
  return is_kept("file", stem + ".json") ? std::string(file)
                                         : names.of("file", file) + ".window-0.json";
}

// Steps and phases are known by the names of their ranges.
std::string range_name(Pseudonyms& names, std::string_view name) {
  constexpr const char* kOfPhases[] = {"load batch", "forward", "backward", "optimizer step",
                                       "other"};
  static_assert(std::size(kOfPhases) == std::size(tables::kStepPhaseNames));
  std::int64_t number = 0;
  const bool is_phase =
      std::ranges::find(tables::kStepPhaseNames, name) != std::end(tables::kStepPhaseNames);
  if (is_phase || !step_name(name, number).empty()) return std::string(name);
  const auto phase = tables::phase_of_name(name);
  return names.of(phase ? kOfPhases[static_cast<std::size_t>(*phase)] : "range", name);
}

// The role of a communicator is known by its name.
std::string communicator_name(Pseudonyms& names, std::string_view name) {
  const std::string_view role = tables::role_of_name(name);
  return names.of(role.empty() ? "name" : role, name);
}

std::string made(Pseudonyms& names, std::string_view kind, std::string_view name) {
  if (kind == "library") return library_path(names, name);
  if (kind == "process") return process_title(names, name);
  if (kind == "range") return range_name(names, name);
  if (kind == "name") return communicator_name(names, name);
  if (kind == "window") return window_file(names, name);
  if (kind == "handle") return "0x" + std::to_string(names.number(kind, name));
  return is_kept(kind, name) ? std::string(name) : names.of(kind, name);
}

constexpr std::array<std::string_view, 22> kWords = {
    "on",      "off",      "all",           "true",        "false", "yes",
    "no",      "Ring",     "Tree",          "NVLS",        "PAT",   "LL",
    "LL128",   "Simple",   "CollnetDirect", "WARN",        "INFO",  "TRACE",
    "VERSION", "PARALLEL", "GROUP",         "CollnetChain"};

template <typename Map>
auto& entry(Map& map, std::string_view key) {
  const auto known = map.find(key);
  return known == map.end() ? map[std::string(key)] : known->second;
}

// Returns the value of TPROF_STEP with the range's or function's name as it is in the lines.
std::string step_value(Pseudonyms& names, const StepMark& mark, std::string_view value) {
  const std::size_t begin = value.find(':') + 1;
  return std::string(value.substr(0, begin)) +
         names.shown(mark.by == StepBy::range ? "range" : "function", mark.name) +
         std::string(value.substr(begin + mark.name.size()));
}

// Returns a setting's value. Keeps what names no folder, user or host: numbers, lists of them,
// sizes, the words that settings have, and all that a setting accepts that does not accept just any
// text. Everything else gets a number.
std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value) {
  if (name == "TPROF_RUN_ID") return names.of("run", value);
  const auto* own = std::ranges::find(kSettings, name, &SettingInfo::name);
  if (own != std::end(kSettings) && own->accepts(value)) {
    StepMark mark;
    const bool is_step = own == &info(Setting::step) && parse_step_mark(value, mark);
    if (is_step && !mark.name.empty()) return step_value(names, mark, value);
    if (value == own->fallback || !(own->accepts("x") || own->accepts("/x"))) {
      return std::string(value);
    }
  }
  if (is_kept("numbers", value) || std::ranges::find(kWords, value) != kWords.end()) {
    return std::string(value);
  }
  // A value that has to be a path stays one.
  return (value.starts_with('/') ? "/" : "") + names.of("value", value);
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
  return matches(text, *field.pattern) ? std::string(text) : names_.of("id", text);
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
  if (field.names == "setting") return is_kept("setting", key) ? std::string(key) : "";
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

std::size_t Pseudonyms::number(std::string_view kind, std::string_view name) {
  Numbers& numbers = entry(numbers_, kind);
  std::size_t& number = entry(numbers, name);
  if (number == 0) number = numbers.size();
  return number;
}

std::string Pseudonyms::of(std::string_view kind, std::string_view name) {
  if (name.empty()) return {};
  return std::string(kind) + "-" + std::to_string(number(kind, name));
}

const std::string& Pseudonyms::shown(std::string_view kind, std::string_view name) {
  std::string& shown = entry(entry(shown_, kind), name);
  if (shown.empty() && !name.empty()) shown = made(*this, kind, name);
  return shown;
}

bool is_rank_file_name(std::string_view name) {
  return is_kept("file", name);
}

}  // namespace tprof::trace_export
