#include "export/anonymizer.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "export/line_editor.h"
#include "interpose/format/buckets.h"
#include "interpose/format/counters.h"
#include "interpose/format/coverage.h"
#include "interpose/format/dtypes.h"
#include "interpose/format/ledger.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/memory.h"
#include "interpose/format/metrics.h"
#include "interpose/format/record.h"
#include "interpose/format/ring_file.h"
#include "read/metadata.h"
#include "read/window_files.h"

namespace tprof::trace_export {
namespace {

// Keys of numbers, flags, lists and objects. A string under one of these keys is replaced too.
// clang-format off
constexpr std::string_view kKeys[] = {
    "args", "base_time_ns", "busy_ns", "bytes", "bytes_class", "call_tid", "calls", "captured", "clock",
    "collectives", "comm", "comms", "complete", "compute", "config", "count", "coverage", "cudart_version",
    "device", "device_bytes", "device_ns", "device_ns_max", "device_timed", "devices",
    "drift_ppb", "dropped", "dur", "elements", "env", "epoch", "error_ns", "exposed_ns",
    "exposed_ns_max", "failed", "forked_from", "frames", "functions", "graph", "group",
    "host_ns", "host_ns_max", "id2", "in_place", "late", "launcher", "launches", "line",
    "local_rank", "missed", "native", "native_cut", "nccl_version", "nranks", "offset", "offsets", "parent", "partial", "peer",
    "pid", "queued", "ranges_dropped", "rank", "restart", "result", "rows", "self_cost_ns",
    "seq", "simulated", "site", "sort_index", "source", "start_ns", "start_ticks", "step",
    "stream", "sync", "tid", "timing_lost", "exposure_lost", "tools", "ts", "unfinished", "unseen", "exposure_known",
    "exposure_known_ns", "window_ns", "world_size", "lost", "steps_dropped", "first_step", "last_step", "payload",
    "lines", "number", "windows", "argument", "memory", "peak",
    "scopes", "total_ns", "max_ns", "errors", "bins"};
// clang-format on

// The same for clocks and times on the device.
constexpr std::string_view kClockKeys[] = {"ahead_ns",  "at_most_ns",   "clocks", "drift_ppb",
                                           "likely_ns", "monotonic_ns", "pieces", "ranks"};

// Keys of strings, by what the strings are.
constexpr std::string_view kWordKeys[] = {"bucket", "cat",    "dtype", "found", "host_memory",
                                          "kind",   "mode",   "ph",    "ctl",   "obeyed",
                                          "reason", "reduce", "s",     "thread"};
constexpr std::string_view kHashKeys[] = {"alias", "birth", "id", "local", "marks", "signature"};
constexpr std::string_view kVersionKeys[] = {"schema", "tprof_version"};
constexpr std::string_view kLibraryKeys[] = {"cudart_path", "library", "nccl_path", "object",
                                             "path"};
constexpr std::string_view kOtherKeys[] = {"color", "files", "function", "handle",
                                           "name",  "of",    "ring"};
// Keys of names, with the kind of their pseudonyms.
constexpr std::pair<std::string_view, std::string_view> kNameKeys[] = {
    {"boot_id", "boot"},      {"build_id", "build"},
    {"category", "category"}, {"file", "source"},
    {"scope", "range"},       {"symbol", "symbol"},
    {"command", "command"},   {"domain", "domain"},
    {"error", "error"},       {"host", "host"},
    {"pci", "pci"},           {"phase", "phase"},
    {"run_id", "run"},        {"rendezvous", "rendezvous"},
    {"uuid", "GPU"}};

template <typename List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

bool is_known(std::string_view key) {
  return contains(kKeys, key) || contains(kClockKeys, key) || contains(kWordKeys, key) ||
         contains(kHashKeys, key) || contains(kVersionKeys, key) || contains(kLibraryKeys, key) ||
         contains(kOtherKeys, key) ||
         std::ranges::any_of(kNameKeys, [&](const auto& name) { return name.first == key; }) ||
         contains(kDroppedNames, key) || contains(kRangeDroppedNames, key) ||
         contains(kTimingLostNames, key) || contains(kExposureLostNames, key);
}

// Returns what "name" names in the arguments of a line.
std::string_view names_in(std::string_view line) {
  const std::optional<LineKind> kind = line_kind(line);
  if (!kind) return "text";
  switch (*kind) {
    case LineKind::process_name:
      return "process";
    case LineKind::thread_name:
      return "thread";
    case LineKind::comm:
      return "name";
    case LineKind::window:
      return "window";
    default:
      return info_of(*kind).rows ? "function" : "text";
  }
}

bool is_word_of_the_contract(std::string_view text) {
  constexpr std::string_view kWords[] = {
      "M",    "X",     "B",     "C",     "i",     "b",    "e",        "t",      "autograd",
      "byte", "byte2", "byte4", "byte8", "close", "dump", "interval", "period", "uncalled_cudart"};
  const auto named = [&](const auto& info) { return info.name == text; };
  return contains(kWords, text) || text == kGraphCategory || text == kRangeCategory ||
         text == kCounterCategory || text == kDeviceCategory || contains(kModeNames, text) ||
         contains(kCommandNames, text) || contains(kObeyedNames, text) ||
         contains(kReduceNames, text) || contains(kHostMemoryNames, text) ||
         contains(kNoteNames, text) || contains(kMemoryKinds, text) ||
         std::ranges::any_of(kBuckets, named) || std::ranges::any_of(kDtypes, named);
}

bool is_word_of_counters(std::string_view text) {
  return is_metric_word(text) || is_memory_word(text);
}

// True if the text has only letters, digits and `others`, and is too short to be more than it
// seems.
bool consists_of(std::string_view text, std::string_view others) {
  constexpr std::size_t kLongest = 48;
  return text.size() <= kLongest && std::ranges::all_of(text, [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  others.find(c) != std::string_view::npos;
         });
}
bool is_hash(std::string_view text) {
  return consists_of(text, "") && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}
bool is_color(std::string_view text) {
  return text.size() == 7 && text[0] == '#' && is_hash(text.substr(1));
}
bool is_function(std::string_view text) {
  return (text.starts_with("nccl") || text.starts_with("cu")) && consists_of(text, "_");
}
bool is_setting(std::string_view name) {
  return (name.starts_with("TPROF_") || name.starts_with("NCCL_") || name.starts_with("CUDA_")) &&
         consists_of(name, "_");
}

void put_key(std::string_view key, std::string& out) {
  if (out.back() != '{') out += ',';
  ((out += '"') += key) += "\":";
}

// Appends a number, true, false or null unchanged.
void put_token(std::string_view token, std::string& out) {
  token = read::trimmed(token);
  const bool number = !token.empty() && (token[0] == '-' || std::isdigit(token[0]) != 0) &&
                      token.find_first_not_of("0123456789+-.eE") == token.npos;
  if (!number && token != "true" && token != "false" && token != "null") throw not_an_object();
  out += token;
}

}  // namespace

// Nothing in the result has to be escaped.
std::string Anonymizer::replaced(std::string_view text, std::string_view key) {
  if (key == "name") key = names_are_;
  const auto kept_if = [&](bool kept, std::string_view kind) {
    return kept ? std::string(text) : names_.of(kind, text);
  };
  if (contains(kWordKeys, key))
    return is_word_of_the_contract(text) ? std::string(text) : "unknown";
  if (contains(kHashKeys, key)) return kept_if(is_hash(text), "id");
  if (contains(kVersionKeys, key)) return kept_if(consists_of(text, "/.+-"), "version");
  if (contains(kLibraryKeys, key)) return library_path(names_, text);
  if (key == "function") return kept_if(is_function(text), key);
  if (key == "color") return kept_if(is_color(text), key);
  if (key == "file" && names_are_ == "window") {  // a missing file: others were blanked out
    const bool plain = is_rank_file_name(read::stem_of_rank_file(text) + ".json");
    return plain ? std::string(text) : names_.of("file", text) + ".window-0.json";
  }
  if (key == "files" || key == "of") return kept_if(is_rank_file_name(text), "file");
  if (key == "process") return process_title(names_, text);
  if (key == "handle") return "0x" + std::to_string(names_.number(key, text));
  for (const auto& [name, kind] : kNameKeys) {
    if (name == key) return names_.of(kind, text);
  }
  const bool kind = key == "name" || key == "range" || key == "thread";
  return names_.of(kind ? key : "text", text);
}

void Anonymizer::put_value(Value value, std::string_view key, std::string& out) {
  switch (value_of(value.type())) {
    case simdjson::ondemand::json_type::array: {
      const char* separator = "[";
      for (auto element : value_of(value.get_array())) {
        out += std::exchange(separator, ",");
        put_value(value_of(element), key, out);
      }
      out += *separator == '[' ? "[]" : "]";
      return;
    }
    case simdjson::ondemand::json_type::object:
      return put_object(value_of(value.get_object()), key, out);
    case simdjson::ondemand::json_type::string: {
      const std::string_view text = value_of(value.get_string());
      out += key == "ring" ? "null" : '"' + replaced(text, key) + '"';  // nobody could follow it
      return;
    }
    default:
      put_token(value.raw_json_token(), out);
  }
}

void Anonymizer::put_object(simdjson::ondemand::object object, std::string_view key,
                            std::string& out) {
  const bool settings = key == "config" || key == "env";
  out += '{';
  for (auto member : object) {
    const std::string_view inner = value_of(member.unescaped_key());
    if (settings ? !is_setting(inner) : !is_known(inner)) continue;
    std::string_view value;
    if (!settings) {
      put_key(inner, out);
      put_value(value_of(member.value()), inner, out);
    } else if (member.value().get_string().get(value) == simdjson::SUCCESS) {
      put_key(inner, out);
      ((out += '"') += setting_value(names_, inner, value)) += '"';
    }
  }
  out += '}';
}

// Its keys are those of the program or of metrics.
void Anonymizer::put_counter(simdjson::ondemand::object values, std::string& out) {
  out += '{';
  for (auto member : values) {
    const std::string_view key = value_of(member.unescaped_key());
    put_key(is_word_of_counters(key) ? std::string(key) : names_.of("value", key), out);
    put_token(value_of(member.value()).raw_json_token(), out);
  }
  out += '}';
}

// Returns false if the line is not the contract's.
bool Anonymizer::put_line(simdjson::ondemand::object line, std::string_view text,
                          std::string& out) {
  if (read::is_other(text)) return false;
  const bool range = read::is_named_by_program(text);
  bool ours = range;
  out += '{';
  for (auto member : line) {
    const std::string_view key = value_of(member.unescaped_key());
    auto value = value_of(member.value());
    if (key == "args" && !ours) return false;  // we don't know yet what its strings are
    if (key == "name") {
      const std::string_view name = value_of(value.get_string());
      const bool metadata = !range && line_kind(name).has_value();
      ours = ours || metadata;
      put_key(key, out);
      // The program chooses a range's name, which says nothing about the line.
      names_are_ = range ? "range" : "function";
      const bool kept = metadata || (range && is_word_of_counters(name));
      out += '"' + (kept ? std::string(name) : replaced(name, key)) + '"';
      names_are_ = names_in(metadata ? name : "");
    } else if (key == "args" && read::is_counter(text)) {
      put_key(key, out);
      put_counter(value_of(value.get_object()), out);
    } else if (is_known(key)) {
      put_key(key, out);
      put_value(value, key, out);
      // A line in an unknown category was put into the file by another tool.
      if (key == "cat") ours = !out.ends_with("\"unknown\"");
    }
  }
  out += '}';
  return ours;
}

bool Anonymizer::edit(const read::Line& line, std::string& out) {
  const std::size_t before = out.size();
  const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                            line.text.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document document;
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  names_are_ = "text";
  const bool ours = put_line(value_of(document.get_object()), line.text, out);
  if (!ours) out.resize(before);
  return ours;
}

}  // namespace tprof::trace_export
