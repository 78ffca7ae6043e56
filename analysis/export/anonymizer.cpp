#include "export/anonymizer.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <span>

#include "interpose/format/buckets.h"
#include "interpose/format/dtypes.h"
#include "interpose/format/ledger.h"
#include "interpose/format/record.h"
#include "interpose/format/ring_file.h"
#include "read/json.h"
#include "read/metadata.h"

namespace tprof::trace_export {
namespace {

enum class Take {
  number,    // also true, false and null, as everywhere
  word,      // of the contract; another one becomes "unknown"
  function,  // ncclAllGather
  plain,     // letters, digits, "/.+_- ": versions, kinds
  hex,       // a hash
  handle,    // 0x5581c0
  name,      // numbered, under `kind`
  library,   // path, of which the library's name stays
  title,     // of a process
  file,      // name of a rank file
  nothing,   // null
  object,    // `fields`
  settings,  // NAME: value, names as they are
  counts,    // word: number
};

}  // namespace

struct Field {
  std::string_view key;
  Take take = Take::number;
  std::string_view kind = {};
  std::span<const Field> fields = {};
};

namespace {

constexpr Field kDevice[] = {{"device"}, {"uuid", Take::name, "GPU"}, {"pci", Take::name, "pci"}};
constexpr Field kProcess[] = {{"pid"}, {"start_ns"}};
constexpr Field kLauncher[] = {{"pid"}, {"start_ticks"}};
constexpr Field kHeader[] = {{"schema", Take::plain},
                             {"tprof_version", Take::plain},
                             {"run_id", Take::name, "run"},
                             {"rank"},
                             {"world_size"},
                             {"local_rank"},
                             {"restart"},
                             {"host", Take::name, "host"},
                             {"boot_id", Take::name, "boot"},
                             {"pid"},
                             {"start_ns"},
                             {"forked_from", Take::object, {}, kProcess},
                             {"launcher", Take::object, {}, kLauncher},
                             {"rendezvous", Take::name, "rendezvous"},
                             {"command", Take::name, "command"},
                             {"base_time_ns"},
                             {"clock"},
                             {"nccl_version"},
                             {"nccl_path", Take::library},
                             {"cudart_version"},
                             {"cudart_path", Take::library},
                             {"devices", Take::object, {}, kDevice},
                             {"config", Take::settings},
                             {"env", Take::settings},
                             {"ring", Take::nothing}};
constexpr Field kComm[] = {
    {"comm"},   {"id", Take::hex}, {"name", Take::name, "name"}, {"nranks"},          {"rank"},
    {"device"}, {"parent"},        {"birth", Take::hex},         {"alias", Take::hex}};
constexpr Field kGroup[] = {{"group"}, {"ts"}, {"dur"}, {"result"}, {"calls"}, {"simulated"}};
constexpr Field kRow[] = {{"bucket", Take::word},
                          {"name", Take::function},
                          {"dtype", Take::word},
                          {"comm"},
                          {"device"},
                          {"bytes_class"},
                          {"mode", Take::word},
                          {"calls"},
                          {"count"},
                          {"elements"},
                          {"bytes"},
                          {"host_ns"},
                          {"host_ns_max"},
                          {"device_ns"},
                          {"device_timed"},
                          {"failed"},
                          {"unfinished"}};
constexpr Field kGraph[] = {{"graph"}, {"ts"}, {"source"}, {"calls", Take::object, {}, kRow}};
constexpr Field kCollectives[] = {
    {"comm"}, {"collectives"}, {"signature", Take::hex}, {"marks", Take::hex}};
constexpr Field kLedger[] = {{"epoch"},
                             {"reason", Take::word},
                             {"ts"},
                             {"rows", Take::object, {}, kRow},
                             {"comms", Take::object, {}, kCollectives}};
constexpr Field kFunction[] = {{"name", Take::function}, {"library", Take::library}, {"calls"}};
constexpr Field kMissed[] = {{"name", Take::function}, {"calls"}};
constexpr Field kFound[] = {{"path", Take::library}, {"kind", Take::plain}};
constexpr Field kCoverage[] = {{"functions", Take::object, {}, kFunction},
                               {"missed", Take::object, {}, kMissed},
                               {"unseen", Take::object, {}, kFound},
                               {"tools", Take::object, {}, kFound}};
constexpr Field kFooter[] = {{"dropped", Take::counts},
                             {"ranges_dropped", Take::counts},
                             {"self_cost_ns"},
                             {"base_time_ns"},
                             {"coverage", Take::object, {}, kCoverage},
                             {"complete"},
                             {"partial"}};
constexpr Field kIdentity[] = {{"rank"}, {"world_size"}};
constexpr Field kClock[] = {{"clock"}};
constexpr Field kStream[] = {{"stream"}, {"handle", Take::handle}};
constexpr Field kMerged[] = {
    {"schema", Take::plain}, {"tprof_version", Take::plain}, {"files", Take::file}};
constexpr Field kProcessName[] = {{"name", Take::title}};
constexpr Field kSortIndex[] = {{"sort_index"}};
constexpr Field kThreadName[] = {{"name", Take::name, "thread"}};
constexpr Field kCall[] = {{"unfinished"},
                           {"result"},
                           {"captured"},
                           {"step"},
                           {"phase", Take::name, "phase"},
                           {"site"},
                           {"comm"},
                           {"seq"},
                           {"count"},
                           {"dtype", Take::word},
                           {"bytes"},
                           {"peer"},
                           {"reduce", Take::word},
                           {"stream"},
                           {"group"},
                           {"in_place"},
                           {"device"},
                           {"host_memory", Take::word},
                           {"sync"},
                           {"graph"},
                           {"launches"}};

constexpr Field kLast[] = {{"function", Take::function},
                           {"cat", Take::word},
                           {"ts"},
                           {"dur"},
                           {"result"},
                           {"captured"},
                           {"comm"},
                           {"seq"},
                           {"count"},
                           {"dtype", Take::word},
                           {"bytes"},
                           {"peer"},
                           {"reduce", Take::word},
                           {"group"},
                           {"in_place"},
                           {"device"},
                           {"host_memory", Take::word},
                           {"sync"},
                           {"graph"}};

// Metadata lines by their names.
constexpr Field kLines[] = {{"process_name", Take::object, {}, kProcessName},
                            {"process_sort_index", Take::object, {}, kSortIndex},
                            {"thread_name", Take::object, {}, kThreadName},
                            {"tprof_merged", Take::object, {}, kMerged},
                            {"tprof_header", Take::object, {}, kHeader},
                            {"tprof_identity", Take::object, {}, kIdentity},
                            {"tprof_comm", Take::object, {}, kComm},
                            {"tprof_stream", Take::object, {}, kStream},
                            {"tprof_clock", Take::object, {}, kClock},
                            {"tprof_group", Take::object, {}, kGroup},
                            {"tprof_graph", Take::object, {}, kGraph},
                            {"tprof_last", Take::object, {}, kLast},
                            {"tprof_ledger", Take::object, {}, kLedger},
                            {"tprof_footer", Take::object, {}, kFooter}};
constexpr Field kCallArguments = {"args", Take::object, {}, kCall};
constexpr Field kRange[] = {{"unfinished"}, {"domain", Take::name, "domain"}, {"device"}};
constexpr Field kRangeArguments = {"args", Take::object, {}, kRange};
constexpr Field kRangeName = {"name", Take::name, "range"};
constexpr Field kRangeId[] = {{"local", Take::plain}};
// Of every line, besides its name and arguments.
constexpr Field kTop[] = {{"cat", Take::word},
                          {"ph", Take::word},
                          {"pid"},
                          {"tid"},
                          {"ts"},
                          {"dur"},
                          {"s", Take::word},
                          {"id2", Take::object, {}, kRangeId}};

const Field* find(std::span<const Field> fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

const std::set<std::string_view>& words() {
  static const std::set<std::string_view> all = [] {
    std::set<std::string_view> w = {
        "M",           "X",     "B",     "i",     "b",        "e",      "t",     "byte",
        "byte2",       "byte4", "byte8", "close", "interval", "window", "reset", kGraphCategory,
        kRangeCategory};
    for (const BucketInfo& b : kBuckets) w.insert(b.name);
    for (const DtypeInfo& d : kDtypes) w.insert(d.name);
    w.insert(std::begin(kModeNames), std::end(kModeNames));
    w.insert(std::begin(kReduceNames), std::end(kReduceNames));
    w.insert(std::begin(kHostMemoryNames), std::end(kHostMemoryNames));
    w.insert(std::begin(kDroppedNames), std::end(kDroppedNames));
    w.insert(std::begin(kRangeDroppedNames), std::end(kRangeDroppedNames));
    return w;
  }();
  return all;
}

constexpr std::size_t kLongest = 48;  // of what passes as it is

template <typename F>
bool all(std::string_view text, F&& allowed) {
  return text.size() <= kLongest && std::ranges::all_of(text, allowed);
}
bool letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool of_word(char c) {
  return letter_or_digit(c) || c == '_';
}
bool is_function(std::string_view s) {
  return (s.starts_with("nccl") || s.starts_with("cu")) && all(s, of_word);
}
bool is_plain(std::string_view s) {
  return all(s, [](char c) {
    return letter_or_digit(c) || std::string_view("/.+_- ").find(c) != std::string_view::npos;
  });
}
bool is_hex(std::string_view s) {
  return all(s, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
}
bool is_setting(std::string_view s) {
  return (s.starts_with("TPROF_") || s.starts_with("NCCL_") || s.starts_with("CUDA_")) &&
         all(s, of_word);
}

read::Malformed not_an_object() {
  return read::Malformed("expected one JSON object on this line");
}

// What simdjson says, or an exception: the line is not JSON.
template <typename T>
T take(simdjson::simdjson_result<T> result) {
  T value;
  if (std::move(result).get(value) != simdjson::SUCCESS) throw not_an_object();
  return value;
}

void put_key(std::string& out, bool& first, std::string_view key) {
  out += first ? "\"" : ",\"";
  out += key;
  out += "\":";
  first = false;
}
void put_text(std::string& out, std::string_view text) {
  out += '"';
  out += text;  // nothing in it has to be escaped
  out += '"';
}

// A number, true, false or null as it stands; false for what only begins like one.
bool put_token(std::string& out, std::string_view token) {
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) {
    token.remove_suffix(1);
  }
  const bool number = !token.empty() && (token[0] == '-' || (token[0] >= '0' && token[0] <= '9')) &&
                      std::ranges::all_of(token, [](char c) {
                        return (c >= '0' && c <= '9') ||
                               std::string_view("+-.eE").find(c) != std::string_view::npos;
                      });
  if (!number && token != "true" && token != "false" && token != "null") return false;
  out += token;
  return true;
}

}  // namespace

bool Anonymizer::edit_text(std::string_view text, const Field& field, std::string& out) {
  switch (field.take) {
    case Take::word:
      put_text(out, words().contains(text) ? text : "unknown");
      return true;
    case Take::function:
      put_text(out, is_function(text) ? std::string(text) : names_.of("function", text));
      return true;
    case Take::plain:
      put_text(out, is_plain(text) ? std::string(text) : names_.of("text", text));
      return true;
    case Take::hex:
      put_text(out, is_hex(text) ? std::string(text) : names_.of("id", text));
      return true;
    case Take::handle:
      put_text(out, "0x" + std::to_string(names_.number("handle", text)));
      return true;
    case Take::name:
      put_text(out, names_.of(field.kind, text));
      return true;
    case Take::library:
      put_text(out, library_path(names_, text));
      return true;
    case Take::title:
      put_text(out, process_title(names_, text));
      return true;
    case Take::file:
      put_text(out, is_rank_file_name(text) ? std::string(text) : names_.of("file", text));
      return true;
    case Take::nothing:
      out += "null";
      return true;
    default:
      return false;
  }
}

// Nothing is appended where false is returned.
bool Anonymizer::edit_value(simdjson::ondemand::value value, const Field& field, std::string& out) {
  const std::size_t before = out.size();
  switch (take(value.type())) {
    case simdjson::ondemand::json_type::array: {
      out += '[';
      for (auto element : take(value.get_array())) {
        if (out.size() > before + 1) out += ',';
        if (!edit_value(take(element), field, out)) {
          out.resize(before);
          return false;
        }
      }
      out += ']';
      return true;
    }
    case simdjson::ondemand::json_type::object:
      if (field.take == Take::settings) {
        edit_settings(take(value.get_object()), out);
      } else if (field.take == Take::counts || !field.fields.empty()) {
        edit_object(take(value.get_object()), field, out);
      } else {
        return false;
      }
      return true;
    case simdjson::ondemand::json_type::string:
      return edit_text(take(value.get_string()), field, out);
    default:
      return put_token(out, value.raw_json_token());
  }
}

void Anonymizer::edit_object(simdjson::ondemand::object object, const Field& field,
                             std::string& out) {
  bool first = true;
  out += '{';
  for (auto member : object) {
    const std::string_view key = take(member.unescaped_key());
    const Field count{key};
    const Field* inner = field.take != Take::counts ? find(field.fields, key)
                         : words().contains(key)    ? &count
                                                    : nullptr;
    if (inner == nullptr) continue;
    const std::size_t before = out.size();
    const bool was_first = first;
    put_key(out, first, inner->key);
    if (edit_value(take(member.value()), *inner, out)) continue;
    out.resize(before);
    first = was_first;
  }
  out += '}';
}

void Anonymizer::edit_settings(simdjson::ondemand::object object, std::string& out) {
  bool first = true;
  out += '{';
  for (auto member : object) {
    const std::string_view key = take(member.unescaped_key());
    std::string_view value;
    if (!is_setting(key) || member.value().get_string().get(value) != simdjson::SUCCESS) continue;
    put_key(out, first, key);
    put_text(out, setting_value(names_, key, value));
  }
  out += '}';
}

bool Anonymizer::edit(const read::Line& line, std::string& out) {
  const std::size_t before = out.size();
  const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                            line.text.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document document;
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  const Field* kind = nullptr;
  const bool range = read::is_range(line.text);  // named by the program: its name says nothing
  bool ours = range;
  bool first = true;
  out += '{';
  for (auto member : take(document.get_object())) {
    const std::string_view key = take(member.unescaped_key());
    auto value = take(member.value());
    if (key == "name" && range) {
      put_key(out, first, "name");
      edit_text(take(value.get_string()), kRangeName, out);
    } else if (key == "name") {
      const std::string_view name = take(value.get_string());
      kind = find(kLines, name);
      ours = kind != nullptr;
      put_key(out, first, "name");
      edit_text(name, {"name", ours ? Take::plain : Take::function}, out);
    } else if (key == "args") {
      if (!ours) {
        out.resize(before);
        return false;
      }
      put_key(out, first, "args");
      if (!edit_value(value,
                      range             ? kRangeArguments
                      : kind != nullptr ? *kind
                                        : kCallArguments,
                      out))
        throw not_an_object();
    } else if (const Field* field = find(kTop, key)) {
      const std::size_t start = out.size();
      const bool was_first = first;
      put_key(out, first, field->key);
      if (!edit_value(value, *field, out)) {
        out.resize(start);
        first = was_first;
      }
      // What is in no bucket is somebody else's, put into the file by another tool.
      if (key == "cat") ours = !std::string_view(out).ends_with("\"unknown\"");
    }
  }
  out += '}';
  if (!ours) out.resize(before);
  return ours;
}

}  // namespace tprof::trace_export
