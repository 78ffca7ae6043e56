#include "export/line_editor.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "export/digits.h"
#include "interpose/format/line_kinds.h"
#include "read/metadata.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::int64_t> integer_of(std::string_view token) {
  std::int64_t v = 0;
  const char* end = token.data() + token.size();
  const auto [at, error] = std::from_chars(token.data(), end, v);
  return !token.empty() && error == std::errc() && at == end ? std::optional(v) : std::nullopt;
}

// Deeper than any line of ours. A deeper one would be walked by recursion.
constexpr int kMaxDepth = 16;

Json parsed(std::string_view text) {
  return Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) throw read::Malformed("nested too deeply");
    return true;
  });
}

void shift_anchor(Json& anchor, const Placement& to) {
  const auto& ns = anchor.at(0).get_ref<const std::int64_t&>();
  if (ns < -read::kLatestNs || ns > read::kLatestNs)
    throw read::Malformed("expected a clock anchor");
  anchor.at(0) = to.moved(ns);
}

// Edits a line with times in other places than `ts`. There are one or a few per process.
void edit_clock_line(const read::Line& line, const Placement& to, std::string& out) {
  try {
    Json j = parsed(line.text);
    Json& args = j.at("args");
    j.at("pid") = to.pid;
    if (j.at("name") == name_of(LineKind::header)) {
      args.at("base_time_ns") = to.base_time_ns;
      args.erase("monotonic_ns");  // ts are no longer on that clock
      for (Json& anchor : args.at("clock")) shift_anchor(anchor, to);
    } else {
      shift_anchor(args.at("clock"), to);
    }
    out += j.dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& e) {
    throw read::Malformed(e.what());
  }
}

// The lines that were left out count as dropped, so that no reader takes the others for all.
void edit_footer(const read::Line& line, const Placement& to, std::string& out) {
  try {
    Json j = parsed(line.text);
    j.at("pid") = to.pid;
    Json& dropped = j.at("args").at("dropped");
    dropped["filter"] = dropped.value("filter", std::uint64_t{0}) + to.left_out;
    out += j.dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& e) {
    throw read::Malformed(e.what());
  }
}

}  // namespace

void append_position(const Placement& to, std::int64_t ts_ns, std::string& out) {
  if (!out.ends_with("}}")) return;
  const std::string more = to.position(ts_ns);
  if (more.empty()) return;
  out.resize(out.size() - 2);
  if (!out.ends_with('{')) out += ',';
  (out += more) += "}}";
}

// Adds an event's position in training. A trace that was merged before has it already.
void LineEditor::add_position(const read::Line& line, const Places& at, const Placement& to,
                              std::string& out) {
  // A device computes on from one step into the next.
  const bool event =
      !read::is_metadata(line.text) && !read::is_counter(line.text) && !read::is_busy(line.text);
  if (!event || at.ts.empty()) return;
  if (line.text.find("\"step\":") != std::string_view::npos) return;
  append_position(to, read::micros_to_ns(at.ts), out);
}

LineEditor::Places LineEditor::find(const read::Line& line) {
  Places places;
  const bool named = read::is_named_by_program(line.text);
  simdjson::ondemand::document document;
  const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                            line.text.size() + simdjson::SIMDJSON_PADDING);
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  const auto token = [&](simdjson::ondemand::value value) {
    return read::trimmed(value.raw_json_token());
  };
  // JSON does not say which of two equal keys counts, and only one of them would be moved.
  const auto once = [](std::string_view& place, std::string_view key, std::string_view found) {
    if (!place.empty()) throw read::Malformed("\"" + std::string(key) + "\" stands twice");
    place = found;
  };
  for (auto field : value_of(document.get_object())) {
    const std::string_view key = value_of(field.unescaped_key());
    auto value = value_of(field.value());
    if (key == "name") {
      once(places.name, key, named ? "\"\"" : token(value));
    } else if (key == "pid") {
      once(places.pid, key, token(value));
    } else if (key == "tid") {
      once(places.tid, key, token(value));
    } else if (key == "ts") {
      once(places.ts, key, token(value));
    } else if (key == "dur") {
      once(places.dur, key, token(value));
    } else if (key == "args") {
      once(places.args, key, token(value));
      const bool metadata = places.name.starts_with("\"tprof_");
      if (!metadata && places.dur.empty()) continue;
      for (auto arg : value_of(value.get_object())) {
        const std::string_view inner = value_of(arg.unescaped_key());
        const auto found = value_of(arg.value());
        if (inner == (metadata ? "ts" : "cut")) {
          once(metadata ? places.ts : places.cut, inner, token(found));
        }
      }
    }
  }
  const char* more = nullptr;
  if (document.current_location().get(more) == simdjson::SUCCESS) throw not_an_object();
  if (places.name.empty() || !integer_of(places.pid)) {
    throw read::Malformed("expected a name and an integer in \"pid\"");
  }
  return places;
}

void LineEditor::arguments(const read::Line& line, std::string& out) {
  const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                            line.text.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document document;
  if (parser_.iterate(padded).get(document) != simdjson::SUCCESS) throw not_an_object();
  for (auto arg : value_of(document["args"].get_object())) {
    const std::string_view key = value_of(arg.escaped_key());
    auto value = value_of(arg.value());
    if (key == "op" || key == "cut") continue;
    if (!out.empty()) out += ',';
    (((out += '"') += key) += "\":") += read::trimmed(value_of(simdjson::to_json_string(value)));
  }
  out += "}}";
}

bool LineEditor::edit(const read::Line& line, const Placement& to, std::string& out,
                      const Nesting* slices) {
  if (read::is_of_merge(line.text) || read::is_other(line.text)) return false;
  const Places at = find(line);
  switch (line_kind(at.name.substr(1, at.name.size() - 2)).value_or(LineKind::thread_name)) {
    case LineKind::process_name:
    case LineKind::process_sort_index:
    case LineKind::node:
    case LineKind::merged:
      return false;
    case LineKind::header:
    case LineKind::clock:
      edit_clock_line(line, to, out);
      return true;
    case LineKind::footer:
      if (to.left_out == 0) break;
      edit_footer(line, to, out);
      return true;
    default:
      break;
  }
  const std::int64_t ts = at.ts.empty() ? 0 : read::micros_to_ns(at.ts);
  if (to.from_zero && !at.ts.empty() && to.moved(ts) < 0) return false;
  std::vector<std::pair<std::string_view, std::string>> changed;
  const auto put = [&](std::string_view place, std::string text) {
    if (!place.empty()) changed.emplace_back(place, std::move(text));
  };
  put(at.pid, std::to_string(to.pid));
  put(at.ts, micros(to.moved(ts)));
  if (!at.dur.empty() && !at.ts.empty()) {
    const std::int64_t before = at.cut.empty() ? 0 : read::micros_to_ns(at.cut);
    const std::int64_t dur = read::micros_to_ns(at.dur) + before;
    const auto lane = integer_of(at.tid);
    const std::int64_t cut = slices == nullptr || !lane ? 0 : slices->cut_ns(*lane, ts, dur);
    put(at.dur, micros(to.length(ts, dur - cut)));
    if (!at.cut.empty()) {
      put(at.cut, micros(cut));
    } else if (cut != 0 && at.args.starts_with('{')) {
      const std::string_view all =
          line.text.substr(static_cast<std::size_t>(at.args.data() - line.text.data()));
      const bool none = all.find_first_not_of(" \t", 1) == all.find('}');
      put(all.substr(0, 1), "{\"cut\":" + micros(cut) + (none ? "" : ","));
    }
  }
  std::ranges::sort(changed, {}, [](const auto& change) { return change.first.data(); });
  const char* copied = line.text.data();
  for (const auto& [place, text] : changed) {
    out.append(copied, place.data()) += text;
    copied = place.data() + place.size();
  }
  out.append(copied, line.text.data() + line.text.size());
  if (to.position) add_position(line, at, to, out);
  return true;
}

}  // namespace tprof::trace_export
