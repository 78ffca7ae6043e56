#include "export/other_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <tuple>

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

// A collective that PyTorch's profiler marks: by `record_param_comms`, or by the range `nccl:NAME`
// of versions whose records have no name.
struct Mark {
  std::string thread;
  align::Stay stay;
  bool range = false;
};

// PyTorch's names, without underscores, of what is one call of the library. Coalesced ones, which
// are several calls, are not here; nor are sends and receives.
struct Known {
  std::string_view name;
  Bucket kind;
  std::string_view elements;  // which of its arguments has them; empty: none
};
constexpr std::string_view kIn = "In msg nelems";
constexpr std::string_view kOut = "Out msg nelems";
constexpr Known kKnown[] = {
    {"allgather", Bucket::ALLGATHER, kOut},     {"allgatherbase", Bucket::ALLGATHER, kOut},
    {"reducescatter", Bucket::RESHARDING, kIn}, {"reducescatterbase", Bucket::RESHARDING, kIn},
    {"allreduce", Bucket::ALLREDUCE, kIn},      {"allreducebarrier", Bucket::ALLREDUCE, ""},
    {"barrier", Bucket::ALLREDUCE, ""},         {"broadcast", Bucket::BROADCAST, kIn},
    {"broadcastoop", Bucket::BROADCAST, kIn},   {"reduce", Bucket::REDUCE, kIn},
    {"reduceoop", Bucket::REDUCE, kIn},
};

const Known* known(std::string_view name) {
  std::string plain(name);
  std::erase(plain, '_');
  const auto* found = std::ranges::find(kKnown, plain, &Known::name);
  return found == std::end(kKnown) ? nullptr : found;
}

std::uint64_t elements_of(const read::object& args, const Known& what) {
  std::uint64_t elements = 0;
  std::string_view dtype;
  if (what.elements.empty() || args.at_key(what.elements).get(elements) != simdjson::SUCCESS) {
    return 0;
  }
  // The library gets each complex number as two elements, so its count is another one.
  const bool has_dtype = args.at_key("dtype").get(dtype) == simdjson::SUCCESS;
  return has_dtype && dtype.starts_with("Complex") ? 0 : elements;
}

// Returns that of an event, by its `name` and `args` as JSON; nullopt: it marks none.
std::optional<Mark> mark_of(std::string_view name, std::string_view args) {
  constexpr std::string_view kRange = "\"nccl:";
  simdjson::dom::parser parser;
  read::object o;
  std::string_view said;
  const bool range = name.starts_with(kRange);
  if (range) {
    said = name.substr(kRange.size(), name.find('"', kRange.size()) - kRange.size());
  } else if (name != "\"record_param_comms\"" ||
             parser.parse(args.data(), args.size()).get(o) != simdjson::SUCCESS ||
             o.at_key("Collective name").get(said) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const Known* what = known(said);
  if (what == nullptr) return std::nullopt;
  return Mark{{}, {what->kind, range ? 0 : elements_of(o, *what)}, range};
}

// Returns all of them by their begin: records, or ranges where there are no records. If one
// encloses another (a barrier and its all-reduce), only the inner one is returned.
std::vector<align::Stay> innermost(std::vector<Mark> marks) {
  if (!std::ranges::all_of(marks, &Mark::range))
    std::erase_if(marks, [](const Mark& m) { return m.range; });
  // If two begin together, the inner one comes second.
  std::ranges::sort(marks, {}, [](const Mark& m) {
    return std::tuple(m.thread, m.stay.begin_ns, -m.stay.end_ns);
  });
  std::vector<align::Stay> all;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool encloses = i + 1 < marks.size() && marks[i + 1].thread == marks[i].thread &&
                          marks[i + 1].stay.end_ns <= marks[i].stay.end_ns;
    if (!encloses) all.push_back(marks[i].stay);
  }
  std::ranges::sort(all, {}, &align::Stay::begin_ns);
  return all;
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
