#include "export/pseudonyms.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tprof::trace_export {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes digits off the front; false where there are none.
bool take_number(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, digit);
  if (end == text.begin()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The part of a title that says which process it is, at its front.
std::string_view process_of(std::string_view title) {
  std::string_view rest = title;
  if (take(rest, "rank ")) {
    if (!take_number(rest)) return {};
    std::string_view more = rest;
    if (take(more, ", pid ") && take_number(more)) rest = more;
  } else if (!take(rest, "pid ") || !take_number(rest)) {
    return {};
  }
  return title.substr(0, title.size() - rest.size());
}

bool is_library(std::string_view name) {
  return name.starts_with("lib") && name.find(".so") != std::string_view::npos &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("._+-").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

// "0-7,64", "16384", "64MiB".
bool is_numbers(std::string_view value) {
  for (;;) {
    if (!take_number(value)) return false;
    if (take(value, "-") && !take_number(value)) return false;
    for (const std::string_view unit : {"K", "M", "G", "T"}) {
      if (take(value, unit)) break;
    }
    if (!take(value, "iB")) take(value, "B");
    if (value.empty()) return true;
    if (!take(value, ",")) return false;
  }
}

constexpr std::array<std::string_view, 22> kWords = {
    "on",      "off",      "all",           "true",        "false", "yes",
    "no",      "Ring",     "Tree",          "NVLS",        "PAT",   "LL",
    "LL128",   "Simple",   "CollnetDirect", "WARN",        "INFO",  "TRACE",
    "VERSION", "PARALLEL", "GROUP",         "CollnetChain"};

}  // namespace

std::size_t Pseudonyms::number(std::string_view kind, std::string_view name) {
  auto of_kind = known_.find(kind);
  if (of_kind == known_.end()) of_kind = known_.try_emplace(std::string(kind)).first;
  auto& names = of_kind->second;
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  const std::size_t n = names.size() + 1;
  names.emplace(name, n);
  return n;
}

std::string Pseudonyms::of(std::string_view kind, std::string_view name) {
  if (name.empty()) return {};
  return std::string(kind) + "-" + std::to_string(number(kind, name));
}

std::string library_path(Pseudonyms& names, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  std::string shown = is_library(base) ? std::string(base) : names.of("file", base);
  if (slash == std::string_view::npos) return shown;
  return "folder-" + std::to_string(names.number("folder", path.substr(0, slash))) + "/" + shown;
}

std::string process_title(Pseudonyms& names, std::string_view title) {
  const std::string_view process = process_of(title);
  std::string_view rest = title.substr(process.size());
  if (process.empty()) return names.of("process", title);
  if (rest.empty()) return std::string(process);
  if (!take(rest, " on ")) return names.of("process", title);
  return std::string(process) + " on " + names.of("host", rest);
}

std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value) {
  if (name == "TPROF_RUN_ID") return names.of("run", value);
  if (is_numbers(value) || std::ranges::find(kWords, value) != kWords.end()) {
    return std::string(value);
  }
  // One that has to be a path is one.
  return (value.starts_with('/') ? "/" : "") + names.of("value", value);
}

bool is_rank_file_name(std::string_view name) {
  if (!take(name, "rank-") || !take_number(name)) return false;
  if (take(name, ".r") && !take_number(name)) return false;
  return name == ".json" || name == ".json.gz";
}

}  // namespace tprof::trace_export
