#include "export/line_editor.h"

#include <charconv>
#include <nlohmann/json.hpp>

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

void shift_anchor(Json& anchor, const Placement& to) {
  const auto& ns = anchor.at(0).get_ref<const std::int64_t&>();
  if (ns < -read::kLatestNs || ns > read::kLatestNs)
    throw read::Malformed("expected a clock anchor");
  anchor.at(0) = to.moved(ns);
}

// Edits a line with times in other places than `ts`, or with what was left out. There are one or a
// few per process.
void edit_values(LineKind kind, const read::Line& line, const Member& member, Pen& out) {
  const Placement& to = *member.to;
  std::string text;
  try {
    Json j = Json::parse(line.text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) throw read::Malformed("nested too deeply");
      return true;
    });
    Json& args = j.at("args");
    j.at("pid") = to.pid;
    if (kind == LineKind::header) {
      args.at("base_time_ns") = to.base_time_ns;
      args.erase("monotonic_ns");  // ts are no longer on that clock
      for (Json& anchor : args.at("clock")) shift_anchor(anchor, to);
    } else if (kind == LineKind::clock) {
      shift_anchor(args.at("clock"), to);
    } else {
      // The lines that were left out count as dropped, so that no reader takes the others for all.
      Json& dropped = args.at("dropped");
      dropped["filter"] = dropped.value("filter", std::uint64_t{0}) + member.left_out;
    }
    text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& e) {
    throw read::Malformed(e.what());
  }
  out.line(text.size()) << text;
}

}  // namespace

std::string LineEditor::arguments(const read::Line& line) {
  event_.read(line.text);
  args_.read(event_["args"]);
  for (const char* added : {"op", "cut"}) args_.set(added, "");
  return args_.text() + "}}";
}

void LineEditor::edit(const read::Line& line, const Member& member, const Nesting* slices,
                      Pen& out) {
  if (read::is_of_merge(line.text) || read::is_other(line.text)) return;
  const Placement& to = *member.to;
  event_.read(line.text);
  const bool named = read::is_named_by_program(line.text);
  const std::string_view token = event_["name"];
  if (token.empty() || !integer_of(event_["pid"])) {
    throw read::Malformed("expected a name and an integer in \"pid\"");
  }
  const std::string_view name = named ? "" : token.substr(1, token.size() - 2);
  const LineKind kind = line_kind(name).value_or(LineKind::thread_name);
  switch (kind) {
    case LineKind::process_name:
    case LineKind::process_sort_index:
    case LineKind::node:
    case LineKind::merged:
      return;
    case LineKind::footer:
      if (member.left_out == 0) break;
      [[fallthrough]];
    case LineKind::header:
    case LineKind::clock:
      return edit_values(kind, line, member, out);
    default:
      break;
  }
  const bool metadata = name.starts_with("tprof_");
  const std::string_view dur_token = event_["dur"];
  const bool in_args = event_["args"].starts_with('{') &&
                       (metadata || !dur_token.empty() || member.positions != nullptr);
  in_args ? args_.read(event_["args"]) : args_.clear();
  EventFields& timed = metadata ? args_ : event_;
  if (const std::string_view ts_token = timed["ts"]; !ts_token.empty()) {
    const std::int64_t ts = read::micros_to_ns(ts_token);
    if (member.of_node && to.moved(ts) < 0) return;
    std::int64_t dur = 0;
    if (!metadata && !dur_token.empty()) {
      const std::string_view cut_before = args_["cut"];
      dur = read::micros_to_ns(dur_token);
      if (!cut_before.empty()) dur += read::micros_to_ns(cut_before);
      const auto lane = integer_of(event_["tid"]);
      const std::int64_t cut = slices == nullptr || !lane ? 0 : slices->cut_ns(*lane, ts, dur);
      event_.set("dur", micros(to.length(ts, dur - cut)));
      if (cut != 0 || !cut_before.empty()) args_.set("cut", cut == 0 ? "" : micros(cut));
    }
    const bool busy = read::is_busy(line.text);
    if ((named || busy) && !member.wants(ts, ts + dur)) return;
    timed.set("ts", micros(to.moved(ts)));
    // A device computes on from one step into the next.
    if (in_args && member.positions != nullptr && !metadata && !read::is_counter(line.text) &&
        !busy && args_["step"].empty()) {
      args_.add(member.position(ts));
    }
  }
  if (in_args) event_.set("args", '{' + args_.text() + '}');
  event_.set("pid", std::to_string(to.pid));
  const std::string text = event_.text();
  out.line(text.size()) << "{" << text << "}";
}

}  // namespace tprof::trace_export
