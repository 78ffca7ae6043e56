#include "export/anonymizer.h"

#include <algorithm>
#include <array>
#include <regex>

namespace tprof::trace_export {
namespace {

// Rejects any text that is longer than a sensible match.
bool matches(std::string_view text, const std::regex& pattern) {
  constexpr std::size_t kLongest = 256;
  return text.size() <= kLongest && std::regex_match(text.begin(), text.end(), pattern);
}

bool is_library(std::string_view name) {
  static const std::regex library(R"(lib[A-Za-z0-9._+-]*\.so[A-Za-z0-9._+-]*)");
  return matches(name, library);
}

bool is_process(std::string_view title) {
  static const std::regex process("rank [0-9]+(, pid [0-9]+)?|pid [0-9]+");
  return matches(title, process);
}

// True for values such as "0-7,64", "16384" and "64MiB".
bool is_numbers(std::string_view value) {
  static const std::regex numbers("([0-9]+(-[0-9]+)?[KMGT]?(iB|B)?(,(?!$)|$))+");
  return matches(value, numbers);
}

constexpr std::array<std::string_view, 22> kWords = {
    "on",      "off",      "all",           "true",        "false", "yes",
    "no",      "Ring",     "Tree",          "NVLS",        "PAT",   "LL",
    "LL128",   "Simple",   "CollnetDirect", "WARN",        "INFO",  "TRACE",
    "VERSION", "PARALLEL", "GROUP",         "CollnetChain"};

}  // namespace

std::size_t Pseudonyms::number(std::string_view kind, std::string_view name) {
  auto& names = known_[std::string(kind)];
  return names.try_emplace(std::string(name), names.size() + 1).first->second;
}

std::string Pseudonyms::of(std::string_view kind, std::string_view name) {
  if (name.empty()) return {};
  return std::string(kind) + "-" + std::to_string(number(kind, name));
}

std::string library_path(Pseudonyms& names, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view base = path.substr(slash + 1);  // with npos all of it
  std::string shown = is_library(base) ? std::string(base) : names.of("file", base);
  if (slash == std::string_view::npos) return shown;
  return names.of("folder", path.substr(0, slash)) + "/" + shown;
}

std::string process_title(Pseudonyms& names, std::string_view title) {
  const std::size_t on = title.find(" on ");
  const std::string_view process = title.substr(0, on);
  if (!is_process(process)) return names.of("process", title);
  std::string shown(process);
  if (on != std::string_view::npos) shown += " on " + names.of("host", title.substr(on + 4));
  return shown;
}

std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value) {
  if (name == "TPROF_RUN_ID") return names.of("run", value);
  if (is_numbers(value) || std::ranges::find(kWords, value) != kWords.end()) {
    return std::string(value);
  }
  // A value that has to be a path stays one.
  return (value.starts_with('/') ? "/" : "") + names.of("value", value);
}

bool is_rank_file_name(std::string_view name) {
  static const std::regex rank_file(R"(rank-[0-9]+(\.r[0-9]+)?\.json(\.gz)?)");
  return matches(name, rank_file);
}

}  // namespace tprof::trace_export
