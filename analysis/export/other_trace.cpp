#include "export/other_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

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

std::optional<std::int64_t> optional_integer(simdjson::simdjson_result<simdjson::dom::element> e) {
  std::int64_t value = 0;
  return e.get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

}  // namespace

void OtherTrace::Event::read(std::string_view text) {
  fields.read(text);
  at = dur_ns = 0;
  if (!has_time()) return;
  at = read::micros_to_ns(fields["ts"]);
  if (slice()) dur_ns = read::micros_to_ns(fields["dur"]);
}

// Each event's tokens are written as they are, so it is parsed as a whole before.
std::string OtherTrace::each_event(const std::function<void(Event&)>& f) const {
  simdjson::dom::parser whole;
  Event event;
  std::string text;
  std::optional<read::JsonPieces> pieces;
  pieces.emplace(file_, "traceEvents", [&](const read::JsonPieces::Piece& p) {
    try {
      text.reserve(p.text.size() + simdjson::SIMDJSON_PADDING);
      text = p.text;
      if (const auto error = whole.parse(text.data(), text.size(), false).error()) {
        throw read::Malformed(simdjson::error_message(error));
      }
      event.read(text);
      f(event);
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

OtherTrace::OtherTrace(std::filesystem::path file) : file_(std::move(file)) {
  std::vector<Mark> marks;
  const std::string rest = each_event([&](const Event& e) {
    if (!e.has_time()) return;
    if (!e.timed()) {
      ++left_out_;
      return;
    }
    begin_ = std::min(begin_, e.at);
    end_ = std::max(end_, e.at);
    if (!e.slice()) return;
    slices_.add(lane(e), e.at, e.dur_ns);
    if (e["cat"] != "\"cpu_op\"" && e["cat"] != "\"user_annotation\"") return;
    if (auto mark = mark_of(e["name"], e["args"])) {
      mark->thread = e["tid"];
      mark->stay.begin_ns = e.at;
      mark->stay.end_ns = e.at + e.dur_ns;
      marks.push_back(*std::move(mark));
    }
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
  collectives_ = innermost(std::move(marks));
  for (align::Stay& s : collectives_) {
    s.begin_ns += base_ns_;
    s.end_ns += base_ns_;
  }
}

// Arrows have an id within a category and a name, ranges that may overlap one within a category.
std::string OtherTrace::id_of(const Event& e, std::int64_t& next_id) {
  const std::string_view id = e[e["id"].empty() ? "id2" : "id"];
  if (id.empty()) return "";
  const std::string_view ph = e["ph"];
  const bool arrow = ph == "\"s\"" || ph == "\"t\"" || ph == "\"f\"";
  std::string key = fmt::format("{} {} {}", unquoted(id), e["cat"], arrow ? e["name"] : "");
  const auto [at, fresh] = ids_.try_emplace(std::move(key), next_id);
  if (fresh) ++next_id;
  return std::to_string(at->second);
}

// Gives it its times and its ids.
void OtherTrace::move(Event& e, const Placement& to, std::int64_t& next_id) {
  EventFields& fields = e.fields;
  std::string id;
  if (e.metadata()) {
    for (const char* no_part_of_it : {"ts", "dur"}) fields.set(no_part_of_it, "");
  } else {
    const std::int64_t at = base_ns_ + e.at;
    fields.set("ts", micros(to.moved(at)));
    if (e.slice()) {
      const std::int64_t cut = slices_.cut_ns(lane(e), e.at, e.dur_ns);
      fields.set("dur", micros(to.length(at, e.dur_ns - cut)));
      if (cut != 0) {
        EventFields args;
        if (e["args"].starts_with('{')) args.read(e["args"]);
        args.set("cut", micros(cut));
        fields.set("args", '{' + args.text() + '}');
      }
    }
    id = id_of(e, next_id);
  }
  fields.set("id", id);
  for (const char* not_ours : {"id2", "bind_id", "scope"}) fields.set(not_ours, "");
}

void OtherTrace::put(const Placement& to, std::int64_t first_lane, std::int64_t& next_id,
                     const std::function<void(Pen&)>& full) {
  ids_.clear();
  Pen out;
  each_event([&](Event& e) {
    // Merge writes its own names of processes, and its own sort order for viewers.
    const bool shown = e.metadata() ? e["name"] == "\"thread_name\""
                                    : !e["ph"].empty() && e.has_time() && e.timed();
    if (!shown) return;
    const std::string category(unquoted(e["cat"]));
    const std::int64_t tid = first_lane + lane(e);
    move(e, to, next_id);
    e.fields.set("pid", std::to_string(to.pid));
    e.fields.set("tid", std::to_string(tid));
    e.fields.set("cat", "");
    const std::string text = e.fields.text();
    out.line(category.size() + text.size())
        << "{\"cat\":\"OTHER," << category << "\"," << text << "}";
    if (out.size() >= kPieceBytes) full(out);
  });
  full(out);
}

}  // namespace tprof::trace_export
