#include "export/anonymizer.h"

#include <algorithm>
#include <array>
#include <regex>

#include "interpose/format/memory.h"
#include "interpose/format/metrics.h"
#include "read/window_files.h"

namespace tprof::trace_export {
namespace {

// Rejects any text that is longer than a sensible match.
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
           "(nccl|cu)[A-Za-z0-9_]{0,46}|"
           "(AllGather|ReduceScatter|AllReduce|Broadcast|Bcast|Reduce|AlltoAll|Gather|Scatter|"
           "Send|Recv|PutSignal|Signal|WaitSignal|EpDispatch|EpCombine|EpComplete|Group|"
           "H2D|D2H|D2D|H2H|Managed)"
           "( [0-9]+([.][0-9]{2})? ([KMGTPE]i)?B)?")},
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

std::string made(Pseudonyms& names, std::string_view kind, std::string_view name) {
  if (kind == "library") return library_path(names, name);
  if (kind == "process") return process_title(names, name);
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

}  // namespace

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

std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value) {
  if (name == "TPROF_RUN_ID") return names.of("run", value);
  if (is_kept("numbers", value) || std::ranges::find(kWords, value) != kWords.end()) {
    return std::string(value);
  }
  // A value that has to be a path stays one.
  return (value.starts_with('/') ? "/" : "") + names.of("value", value);
}

bool is_setting(std::string_view name) {
  return is_kept("setting", name);
}

bool is_rank_file_name(std::string_view name) {
  return is_kept("file", name);
}

}  // namespace tprof::trace_export
