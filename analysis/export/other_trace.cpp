#include "export/other_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "export/other_collectives.h"
#include "read/error.h"
#include "read/input.h"
#include "read/json.h"
#include "read/json_pieces.h"

namespace tprof::trace_export {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// A ts since 1970 is above this (September 2001), a ts since a machine's or a job's start below.
constexpr std::int64_t kEpochTimes = 1'000'000'000'000'000'000;

// Returns the token's text for a string of ours. A token that is no string is cut at the quote that
// would end ours.
std::string_view unquoted(std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  if (quoted) return token.substr(1, token.size() - 2);
  return token.substr(0, token.find('"'));
}

std::int64_t time_ns(std::string_view token) {
  double micros = 0;
  const char* end = token.data() + token.size();
  const bool power = token.find_first_of("eE") != token.npos && token.find('"') == token.npos;
  if (!power) return read::micros_to_ns(token);
  const auto [at, error] = std::from_chars(token.data(), end, micros);
  if (error != std::errc() || at != end || !(std::abs(micros) < 4e15)) {
    throw read::Malformed("expected a time in microseconds, found '" + std::string(token) + "'");
  }
  return std::llround(micros * 1000);
}

std::optional<std::int64_t> optional_integer(simdjson::simdjson_result<simdjson::dom::element> e) {
  std::int64_t value = 0;
  return e.get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

// Arrows have an id within a category and a name, ranges that may overlap one within a category.
bool is_arrow(std::string_view phase) {
  return phase == "\"s\"" || phase == "\"t\"" || phase == "\"f\"";
}

}  // namespace

struct OtherTrace::Event {
  EventFields fields{};
  std::int64_t at = 0;
  std::int64_t dur_ns = 0;

  void read(std::string_view text);
  std::string_view operator[](std::string_view key) const { return fields[key]; }
  bool metadata() const { return fields["ph"] == "\"M\""; }
  bool slice() const { return fields["ph"] == "\"X\"" && !fields["dur"].empty(); }
  bool has_time() const { return !metadata() && !fields["ts"].empty(); }
  bool timed() const { return at != 0 && dur_ns >= 0; }
  // Merge writes its own names of processes, and its own sort order for viewers.
  bool shown() const {
    return metadata() ? fields["name"] == "\"thread_name\""
                      : !fields["ph"].empty() && has_time() && timed();
  }
};

void OtherTrace::Event::read(std::string_view text) {
  fields.read(text);
  at = dur_ns = 0;
  if (!has_time()) return;
  at = time_ns(fields["ts"]);
  if (slice()) dur_ns = time_ns(fields["dur"]);
}

// Each event's tokens are written as they are, so it is parsed as a whole before.
template <typename F>
std::string OtherTrace::each_event(F&& f) const {
  simdjson::dom::parser whole;
  Event event;
  std::string text;
  const auto piece = [&](const read::JsonPieces::Piece& p) {
    text.reserve(p.text.size() + simdjson::SIMDJSON_PADDING);
    text = p.text;
    if (const auto error = whole.parse(text.data(), text.size(), false).error()) {
      throw read::Malformed(simdjson::error_message(error));
    }
    event.read(text);
    f(event);
  };
  std::optional<read::JsonPieces> pieces;
  pieces.emplace(file_, "traceEvents", [&](const read::JsonPieces::Piece& p) {
    try {
      piece(p);
    } catch (const read::Malformed& e) {
      pieces->fail(p.byte, p.line, std::string("in this event: ") + e.what());
    }
  });
  read::Input in(file_);
  std::string bytes(kPieceBytes, '\0');
  while (const std::size_t got = in.read(bytes.data(), bytes.size())) {
    pieces->take(std::string_view(bytes).substr(0, got));
  }
  pieces->end();
  return pieces->rest();
}

std::int64_t OtherTrace::lane(const Event& e) {
  const auto next = static_cast<std::int64_t>(lanes_.size());
  return lanes_.try_emplace({std::string(e["pid"]), std::string(e["tid"])}, next).first->second;
}

void OtherTrace::look_at(const Event& e) {
  if (!e.has_time()) return;
  if (!e.timed()) {
    ++left_out_;
    return;
  }
  begin_ = std::min(begin_, e.at);
  end_ = std::max(end_, e.at);
  if (e.slice()) slices_.add(lane(e), e.at, e.dur_ns);
}

OtherTrace::OtherTrace(std::filesystem::path file) : file_(std::move(file)) {
  OtherCollectives collectives;
  const std::string rest = each_event([&](const Event& e) {
    look_at(e);
    const std::string_view cat = e["cat"];
    if (!e.slice() || !e.timed() || (cat != "\"cpu_op\"" && cat != "\"user_annotation\"")) return;
    collectives.add(e["tid"], e["name"], e["args"], e.at, e.at + e.dur_ns);
  });
  simdjson::dom::parser parser;
  const simdjson::dom::element about = value_of(parser.parse(rest));
  const auto base = optional_integer(about["baseTimeNanoseconds"]);
  const bool based = base && *base >= 0 && *base < read::kLatestNs;
  rank_ = optional_integer(about["distributedInfo"]["rank"]);
  if (based) base_ns_ = *base;
  if (begin_ > end_) throw read::BadInput(file_, "there is no event in it");
  constexpr std::int64_t kFarthest = read::kLatestNs / 2;
  if (begin_ < -kFarthest || end_ > kFarthest || base_ns_ > kFarthest) {
    throw read::BadInput(file_, "it has a time that can't be");
  }
  if (!based && end_ < kEpochTimes) {
    throw read::BadInput(file_,
                         "nothing tells when its times begin: expected \"baseTimeNanoseconds\", or "
                         "microseconds since 1970");
  }
  slices_.finish();
  collectives_ = std::move(collectives).all();
  for (align::Stay& s : collectives_) {
    s.begin_ns += base_ns_;
    s.end_ns += base_ns_;
  }
}

std::int64_t OtherTrace::number_of(const Event& e, std::string_view kind, std::int64_t& next_id) {
  std::string_view id = e[kind];
  if (id.size() >= 2 && id.front() == '"') id = id.substr(1, id.size() - 2);
  std::string key = fmt::format("{} {}", kind, id);
  if (kind == "id") {
    key += fmt::format(" {} {} {}", e["cat"], e["scope"], is_arrow(e["ph"]) ? e["name"] : "");
  } else if (kind == "id2") {
    key += fmt::format(" {} {}", e["cat"], e["pid"]);
  }
  const auto [at, fresh] = ids_.try_emplace(std::move(key), next_id);
  if (fresh) ++next_id;
  return at->second;
}

void OtherTrace::put_event(Event& e, const Placement& to, std::int64_t lane, std::int64_t& next_id,
                           Pen& out) {
  EventFields& fields = e.fields;
  if (e.metadata()) {
    for (const char* no_part_of_it : {"ts", "dur", "id", "id2", "bind_id"}) {
      fields.set(no_part_of_it, "");
    }
  } else {
    const std::int64_t at = base_ns_ + e.at;
    fields.set("ts", micros(to.moved(at)));
    if (e.slice()) {
      const std::int64_t cut = slices_.cut_ns(this->lane(e), e.at, e.dur_ns);
      fields.set("dur", micros(to.length(at, e.dur_ns - cut)));
      if (cut != 0) {
        const std::string_view args = e["args"];
        const bool none =
            !args.starts_with('{') || args.find_first_not_of(" \t\r\n", 1) == args.find('}');
        fields.set("args", fmt::format("{{\"cut\":{}{}{}", micros(cut), none ? "" : ",",
                                       none ? "}" : args.substr(1)));
      }
    }
    std::string id;
    for (const char* kind : {"id", "id2"}) {
      if (!e[kind].empty()) id = std::to_string(number_of(e, kind, next_id));
    }
    if (!e["bind_id"].empty()) {
      fields.set("bind_id", fmt::format("\"0x{:x}\"", number_of(e, "bind_id", next_id)));
    }
    fields.set("id", id);
    fields.set("id2", "");
  }
  fields.set("scope", "");
  fields.set("pid", std::to_string(to.pid));
  fields.set("tid", std::to_string(lane));
  const std::string category(unquoted(e["cat"]));
  fields.set("cat", "");
  const std::string text = fields.text();
  out.line(category.size() + text.size())
      << "{\"cat\":\"OTHER," << category << "\"," << text << "}";
}

void OtherTrace::put(const Placement& to, std::size_t number, std::int64_t& next_id,
                     const std::function<void(Pen&)>& full) {
  ids_.clear();
  Pen out;
  each_event([&](Event& e) {
    if (!e.shown()) return;
    put_event(e, to, first_lane_of(number) + lane(e), next_id, out);
    if (out.size() >= kPieceBytes) full(out);
  });
  full(out);
}

}  // namespace tprof::trace_export
