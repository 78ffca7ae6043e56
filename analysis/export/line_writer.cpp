#include "export/line_writer.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/metadata.h"

namespace tprof::trace_export {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kNowhere = INT64_MIN;  // in training
// The phases of an arrow's events.
constexpr std::string_view kStart = "\"s\"";
constexpr std::string_view kStep = "\"t\"";
constexpr std::string_view kEnd = "\"f\",\"bp\":\"e\"";
constexpr std::string_view kNameFirst = "{\"name\":\"";
constexpr std::string_view kThreadName = "{\"name\":\"thread_name\"";

// Returns the member whose lines are at `offset`, from its header to the next one. If a process
// holds several ranks, returns the last of them.
const Member& member_at(const std::vector<Member>& members, std::uint64_t offset) {
  auto next = std::ranges::upper_bound(members, offset, {},
                                       [](const Member& m) { return m.process->offset; });
  return next == members.begin() ? *next : *std::prev(next);
}

const Member& lane_of(const Member& last, const std::optional<std::int64_t>& comm,
                      const std::optional<std::int64_t>& device) {
  if (last.process->lanes == 1) return last;
  const read::Process& owner = read::lane_of_call(*last.process, comm, device);
  return *(&last - last.process->lane + owner.lane);
}

// True for what the name of a function is made of: the quotes of others would have to be escaped.
bool is_function(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Lines that are no event of a rank's own: they have no name to replace and no arrow.
bool is_no_event(std::string_view text) {
  return read::is_metadata(text) || read::is_named_by_program(text) || read::is_of_merge(text) ||
         read::is_other(text) || read::is_busy(text) || read::is_life(text) ||
         text.starts_with(kThreadName);
}

// Returns which ranks of a process that holds several a line goes to. A call goes to its own rank,
// and a thread's name to all, since the thread may work for all. Anything else goes to the first.
std::span<const Member> lanes_for(const Member& last, std::string_view line,
                                  simdjson::dom::parser& parser) {
  const Member* first = &last - last.process->lane;
  if (last.process->lanes == 1) return {&last, 1};
  if (line.starts_with(kThreadName)) return {first, &last + 1};
  const bool range = read::is_range(line);
  const bool of_lane = range || read::is_busy(line) || read::is_life(line);
  if (is_no_event(line) && !of_lane) return {first, 1};
  const auto args = read::Fields(read::object_in(parser, line)).get<read::Fields>("args");
  std::optional<std::int64_t> comm;
  std::optional<std::int64_t> device;
  args.may("comm", comm, "device", device);
  if (range && !device) device = 0;
  return {&lane_of(last, comm, device), 1};
}

std::optional<std::int64_t> integer_of(std::string_view token) {
  std::int64_t v = 0;
  const char* end = token.data() + token.size();
  const auto [at, error] = std::from_chars(token.data(), end, v);
  return !token.empty() && error == std::errc() && at == end ? std::optional(v) : std::nullopt;
}

// A clock anchor, or a list of them, on the axis of the merged trace.
std::string moved_anchors(std::string_view token, const Placement& to) {
  const auto move = [&](Json& anchor) {
    const auto& ns = anchor.at(0).get_ref<const std::int64_t&>();
    if (ns < -read::kLatestNs || ns > read::kLatestNs) {
      throw read::Malformed("expected a clock anchor");
    }
    anchor.at(0) = to.moved(ns);
  };
  try {
    Json clock = Json::parse(token);
    if (clock.empty() || !clock.at(0).is_array()) {
      if (!clock.empty()) move(clock);
    } else {
      std::ranges::for_each(clock, move);
    }
    return clock.dump();
  } catch (const Json::exception& e) {
    throw read::Malformed(e.what());
  }
}

}  // namespace

// Returns false for one that is left out.
bool LineWriter::go_to(const Member& member) {
  if (&member != member_) {
    member_ = &member;
    rank_ = timeline_->of(*member.process);
    near_call_ = near_time_ = 0;
  }
  return member.to.has_value();
}

void LineWriter::write(const std::vector<Member>& members, const read::Block& block,
                       const Timeline& timeline, Pen& out) {
  timeline_ = &timeline;
  out_ = &out;
  member_ = nullptr;
  read::each_line(block, [&](const read::Line& line) {
    const Member& last = member_at(members, line.offset);
    try {
      if (own_line(line, last)) return;
      for (const Member& m : lanes_for(last, line.text, parser_)) put(line.text, m);
    } catch (const read::Malformed& e) {
      throw read::BadInput(block.file, line.offset, e.what());
    }
  });
}

// Returns false if the line is not as the library writes it.
bool LineWriter::own_line(const read::Line& line, const Member& last) {
  std::string_view arguments;
  if (line.text.starts_with(kNameFirst)) {
    if (!read::own_lines::call(line.text, call_, &arguments)) return false;
    if (go_to(lane_of(last, call_.comm, call_.device))) put_call(arguments);
  } else if (read::is_device_time(line.text)) {
    if (!read::own_lines::device_time(line.text, time_, &arguments)) return false;
    if (go_to(lane_of(last, time_.comm, time_.device))) put_time(arguments);
  } else {
    if (!read::is_busy(line.text) || !read::own_lines::busy(line.text, busy_)) return false;
    if (go_to(lane_of(last, std::nullopt, busy_.device))) put_busy();
  }
  return true;
}

// Any line.
void LineWriter::put(std::string_view line, const Member& member) {
  if (!go_to(member)) return;
  const filter::Selection* asked = member.asked;
  if (read::is_device_time(line)) {
    time_ = read::device_time_of(read::object_in(parser_, line));
    if (is_function(time_.name)) return put_time(arguments_of(line));
    if (asked != nullptr && !asked->calls().time(*member.process, time_)) return;
  } else if (!is_no_event(line)) {
    if (auto call = read::call_of(read::object_in(parser_, line))) {
      call_ = *std::move(call);
      if (!call_.launch && is_function(call_.name)) return put_call(arguments_of(line));
      if (asked != nullptr && !(call_.launch ? asked->calls().launch(*member.process, call_)
                                             : asked->calls().call(*member.process, call_))) {
        return;
      }
    }
  }
  write(line, member, *out_);
}

LineWriter::Written LineWriter::written(std::int64_t lane, std::int64_t ts_ns,
                                        std::int64_t dur_ns) const {
  const std::int64_t cut = rank_ == nullptr ? 0 : rank_->slices.cut_ns(lane, ts_ns, dur_ns);
  return {lane, ts_ns, dur_ns - cut, cut};
}

void LineWriter::put_slice(const Written& slice) {
  const Placement& to = *member_->to;
  out_->slice(to.pid, slice.lane, to.moved(slice.ts_ns), to.length(slice.ts_ns, slice.dur_ns));
}

void LineWriter::put_color(Bucket bucket, std::string_view function) {
  *out_ << ",\"cname\":\"" << color_of(bucket) << "\",\"args\":{\"op\":\"" << function << "\",";
}

void LineWriter::put_arguments(std::string_view arguments, const Written& slice,
                               std::int64_t ts_ns) {
  const bool position = member_->positions != nullptr && ts_ns != kNowhere &&
                        arguments.find("\"step\":") == arguments.npos;
  if (slice.cut_ns == 0 && !position) {
    *out_ << arguments;
    return;
  }
  *out_ << arguments.substr(0, arguments.size() - 2);
  if (slice.cut_ns != 0) (*out_ << ",\"cut\":").micros(slice.cut_ns);
  const std::string more = position ? member_->position(ts_ns) : std::string();
  if (!more.empty()) *out_ << "," << more;
  *out_ << "}}";
}

void LineWriter::put_call(std::string_view arguments) {
  const read::Event& e = call_;
  if (member_->asked != nullptr && !member_->asked->calls().call(*member_->process, e)) return;
  const Placement& to = *member_->to;
  const CallNames::Name name = names_.of(e.name, e.bucket, e.bytes);
  const Written slice = written(e.thread, e.ts_ns, e.dur_ns);
  // A name may stand twice.
  out_->line(arguments.size() + 2 * e.name.size())
      << "{\"name\":\"" << name.what << name.size << "\",\"cat\":\"" << bucket_name(e.bucket)
      << "\",";
  if (e.unfinished) {
    (*out_ << "\"ph\":\"B\",\"pid\":" << to.pid << ",\"tid\":" << e.thread << ",\"ts\":")
        .micros(to.moved(e.ts_ns));
  } else {
    put_slice(slice);
  }
  put_color(e.bucket, e.name);
  put_arguments(arguments, slice, e.ts_ns);
  if (e.unfinished || e.failed || e.captured) return;
  const DrawnCall* call = rank_ == nullptr ? nullptr : rank_->call(e.ts_ns, e.thread, near_call_);
  if (call != nullptr && call->on_device == 0) put_turn(*call, slice);
}

// `queued` says how long before its time a call was made, on the axis of the merged trace.
void LineWriter::put_time(std::string_view arguments) {
  const read::DeviceTime& t = time_;
  if (member_->asked != nullptr && !member_->asked->calls().time(*member_->process, t)) return;
  const Placement& to = *member_->to;
  const std::int64_t called_ns = t.ts_ns - t.queued_ns;
  const DrawnCall* call = rank_ == nullptr ? nullptr : rank_->call(called_ns, t.thread, near_time_);
  std::optional<Bucket> bucket;
  if (!t.launch && call != nullptr) {
    bucket = static_cast<Bucket>(call->bucket);
  } else if (!t.launch && rank_ != nullptr) {
    bucket = rank_->bucket_without_line(t.name);
  }
  const Written slice = written(t.lane, t.ts_ns, t.dur_ns);
  CallNames::Name name{t.name, {}};
  if (bucket) name = names_.of(t.name, *bucket, call ? call->size() : std::nullopt);
  out_->line(arguments.size() + 2 * t.name.size())
      << "{\"cat\":\"DEVICE\",\"name\":\"" << name.what << name.size << "\",";
  put_slice(slice);
  if (bucket) {
    put_color(*bucket, t.name);
  } else {
    *out_ << ",\"args\":{";
  }
  constexpr std::string_view kQueued = "\"queued\":";
  const std::size_t at = to.clocks == nullptr ? arguments.npos : arguments.find(kQueued);
  if (at != arguments.npos) {
    (*out_ << arguments.substr(0, at) << kQueued).micros(to.moved(t.ts_ns) - to.moved(called_ns));
    arguments.remove_prefix(arguments.find_first_of(",}", at));
  }
  put_arguments(arguments, slice, called_ns);
  if (call == nullptr) return;
  const std::int64_t id = rank_->first_arrow + (call - rank_->calls.data());
  put_end_of_arrow(kStart, "to the device", id, t.thread, to.moved(called_ns));
  put_end_of_arrow(kEnd, "to the device", id, t.lane,
                   to.moved(touched_ns(t.ts_ns, slice.dur_ns, false)));
  if (call->on_device != 0) put_turn(*call, slice);
}

void LineWriter::put_busy() {
  if (!member_->wants(busy_.ts_ns, busy_.ts_ns + busy_.dur_ns)) return;
  const Written slice = written(busy_.lane, busy_.ts_ns, busy_.dur_ns);
  out_->line() << "{\"cat\":\"BUSY\",\"name\":\"compute\",";
  put_slice(slice);
  *out_ << ",\"args\":{\"device\":" << busy_.device;
  // Computation may span steps, so it has no position.
  put_arguments(busy_.unsure ? ",\"unsure\":true}}" : "}}", slice, kNowhere);
}

void LineWriter::put_turn(const DrawnCall& call, const Written& slice) {
  const auto turn = static_cast<Turn>(call.turn);
  if (turn == Turn::none) return;
  const std::int64_t at = touched_ns(slice.ts_ns, slice.dur_ns, call.receives != 0);
  put_end_of_arrow(turn == Turn::first  ? kStart
                   : turn == Turn::last ? kEnd
                                        : kStep,
                   call.message != 0 ? "message" : "collective", call.meet, slice.lane,
                   member_->to->moved(at));
}

// An arrow's id is a unique number of at most 2^53, as viewers require.
void LineWriter::put_end_of_arrow(std::string_view phase, std::string_view name, std::int64_t id,
                                  std::int64_t lane, std::int64_t ts_ns) {
  (out_->line() << "{\"cat\":\"FLOW\",\"name\":\"" << name << "\",\"ph\":" << phase << ",\"id\":"
                << id << ",\"pid\":" << member_->to->pid << ",\"tid\":" << lane << ",\"ts\":")
          .micros(ts_ns)
      << "}";
}

std::string LineWriter::arguments_of(std::string_view line) {
  event_.read(line);
  args_.read(event_["args"]);
  for (const char* added : {"op", "cut"}) args_.set(added, "");
  return args_.text() + "}}";
}

void LineWriter::write(std::string_view line, const Member& member, Pen& out) {
  if (read::is_of_merge(line) || read::is_other(line)) return;
  const Placement& to = *member.to;
  event_.read(line);
  const bool named = read::is_named_by_program(line);
  const std::string_view token = event_["name"];
  if (token.empty() || !integer_of(event_["pid"])) {
    throw read::Malformed("expected a name and an integer in \"pid\"");
  }
  const std::string_view name = named ? "" : token.substr(1, token.size() - 2);
  const LineKind kind = line_kind(name).value_or(LineKind::thread_name);
  if (kind == LineKind::process_name || kind == LineKind::process_sort_index ||
      kind == LineKind::node || kind == LineKind::merged) {
    return;
  }
  const bool metadata = name.starts_with("tprof_");
  const bool in_args = event_["args"].starts_with('{') &&
                       (metadata || !event_["dur"].empty() || member.positions != nullptr);
  in_args ? args_.read(event_["args"]) : args_.clear();
  EventFields& timed = metadata ? args_ : event_;
  if (const std::string_view ts_token = timed["ts"]; !ts_token.empty()) {
    const std::int64_t ts = read::micros_to_ns(ts_token);
    if (member.of_node && to.moved(ts) < 0) return;
    std::int64_t dur = 0;
    if (const std::string_view dur_token = event_["dur"]; !metadata && !dur_token.empty()) {
      const std::string_view cut_before = args_["cut"];
      dur = read::micros_to_ns(dur_token);
      if (!cut_before.empty()) dur += read::micros_to_ns(cut_before);
      const auto lane = integer_of(event_["tid"]);
      const std::int64_t cut = lane ? written(*lane, ts, dur).cut_ns : 0;
      event_.set("dur", micros(to.length(ts, dur - cut)));
      if (cut != 0 || !cut_before.empty()) args_.set("cut", cut == 0 ? "" : micros(cut));
    }
    const bool busy = read::is_busy(line);
    if ((named || busy) && !member.wants(ts, ts + dur)) return;
    timed.set("ts", micros(to.moved(ts)));
    // Computation may span steps.
    if (in_args && member.positions != nullptr && !metadata && !read::is_counter(line) && !busy &&
        args_["step"].empty()) {
      args_.add(member.position(ts));
    }
  }
  if (kind == LineKind::header) {
    args_.set("base_time_ns", std::to_string(to.base_time_ns));
    args_.set("monotonic_ns", "");  // ts are no longer on that clock
  }
  if (kind == LineKind::header || kind == LineKind::clock) {
    args_.set("clock", moved_anchors(args_["clock"], to));
  }
  if (kind == LineKind::footer && member.left_out != 0) {
    // Omitted lines count as dropped, so that readers know about them.
    EventFields dropped;
    dropped.read(args_["dropped"]);
    std::uint64_t before = 0;
    const std::string_view filter = dropped["filter"];
    std::from_chars(filter.data(), filter.data() + filter.size(), before);
    dropped.set("filter", std::to_string(before + member.left_out));
    args_.set("dropped", '{' + dropped.text() + '}');
  }
  if (in_args) event_.set("args", '{' + args_.text() + '}');
  event_.set("pid", std::to_string(to.pid));
  const std::string text = event_.text();
  out.line(text.size()) << "{" << text << "}";
}

}  // namespace tprof::trace_export
