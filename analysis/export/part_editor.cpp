#include "export/part_editor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "read/error.h"
#include "read/metadata.h"
#include "read/process.h"

namespace tprof::trace_export {
namespace {

constexpr std::size_t kUsual = 4096;          // longest line that need not ask for room
constexpr std::int64_t kNowhere = INT64_MIN;  // in training
// The phases of an arrow's events.
constexpr std::string_view kStart = "\"s\"";
constexpr std::string_view kStep = "\"t\"";
constexpr std::string_view kEnd = "\"f\",\"bp\":\"e\"";
constexpr std::string_view kNameFirst = "{\"name\":\"";
constexpr std::string_view kThreadName = "{\"name\":\"thread_name\"";

// Returns the member whose lines are at `offset`, from its header to the next one. If a process
// holds several ranks, returns the last of them.
const Member& member_at(const Part& part, std::uint64_t offset) {
  auto next = std::ranges::upper_bound(part.members, offset, {},
                                       [](const Member& m) { return m.process->offset; });
  return next == part.members.begin() ? *next : *std::prev(next);
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
std::vector<const Member*> lanes_for(const Member& last, const read::Line& line,
                                     simdjson::dom::parser& parser) {
  const Member* first = &last - last.process->lane;
  if (line.text.starts_with(kThreadName)) {
    std::vector<const Member*> all;
    for (const Member* m = first; m <= &last; ++m) all.push_back(m);
    return all;
  }
  const bool range = read::is_range(line.text);
  const bool of_lane = range || read::is_busy(line.text) || read::is_life(line.text);
  if (is_no_event(line.text) && !of_lane) return {first};
  const auto args = read::Fields(read::object_in(parser, line.text)).get<read::Fields>("args");
  std::optional<std::int64_t> comm;
  std::optional<std::int64_t> device;
  args.may("comm", comm, "device", device);
  if (range && !device) device = 0;
  return {&lane_of(last, comm, device)};
}

}  // namespace

// Returns false for one that is left out.
bool PartEditor::go_to(const Member& member) {
  if (&member != member_) {
    member_ = &member;
    rank_ = timeline_->of(*member.process);
    near_call_ = near_time_ = 0;
  }
  return member.to.has_value();
}

void PartEditor::edit(const Part& part, const read::Block& block, const Timeline& timeline,
                      Pen& out) {
  timeline_ = &timeline;
  out_ = &out;
  member_ = nullptr;
  moved_.clear();
  read::each_line(block, [&](const read::Line& line) {
    const Member& member = member_at(part, line.offset);
    try {
      if (own_line(line, member)) return;
      if (member.process->lanes == 1) {
        put(line, member);
      } else {
        for (const Member* m : lanes_for(member, line, parser_)) put(line, *m);
      }
    } catch (const read::Malformed& e) {
      throw read::BadInput(block.file, line.offset, e.what());
    }
  });
}

// Returns false if the line is not as the library writes it.
bool PartEditor::own_line(const read::Line& line, const Member& last) {
  if (line.text.size() > kUsual) return false;
  std::string_view arguments;
  if (line.text.starts_with(kNameFirst)) {
    if (!own_.call(line.text, call_, &arguments)) return false;
    if (go_to(lane_of(last, call_.comm, call_.device))) put_call(arguments);
  } else if (read::is_device_time(line.text)) {
    if (!own_.device_time(line.text, time_, &arguments)) return false;
    if (go_to(lane_of(last, time_.comm, time_.device))) put_time(arguments);
  } else {
    if (!read::is_busy(line.text) || !read::OwnLines::busy(line.text, busy_)) return false;
    if (go_to(lane_of(last, std::nullopt, busy_.device))) put_busy();
  }
  return true;
}

// Any line.
void PartEditor::put(const read::Line& line, const Member& member) {
  if (!go_to(member)) return;
  const bool time = read::is_device_time(line.text);
  if (time || !is_no_event(line.text)) {
    out_->reserve(Pen::kLine + 4 * line.text.size());  // names may stand twice
    const read::Fields event = read::object_in(parser_, line.text);
    auto call = time ? std::nullopt : read::call_of(event);
    if (time) time_ = read::device_time_of(event);
    if (time && is_function(time_.name)) return put_time(editor_.arguments(line));
    if (call && !call->launch && is_function(call->name)) {
      call_ = *std::move(call);
      return put_call(editor_.arguments(line));
    }
    if (const filter::Selection* asked = member.asked; asked != nullptr && (time || call)) {
      const read::Process& of = *member.process;
      if (!(time           ? asked->calls().time(of, time_)
            : call->launch ? asked->calls().launch(of, *call)
                           : asked->calls().call(of, *call))) {
        return;
      }
    }
  }
  editor_.edit(line, member, rank_ == nullptr ? nullptr : &rank_->slices, *out_);
}

PartEditor::Written PartEditor::written(std::int64_t lane, std::int64_t ts_ns,
                                        std::int64_t dur_ns) const {
  const std::int64_t cut = rank_ == nullptr ? 0 : rank_->slices.cut_ns(lane, ts_ns, dur_ns);
  return {lane, ts_ns, dur_ns - cut, cut};
}

void PartEditor::put_slice(const Written& slice) {
  const Placement& to = *member_->to;
  out_->slice(to.pid, slice.lane, to.moved(slice.ts_ns), to.length(slice.ts_ns, slice.dur_ns));
}

void PartEditor::put_arguments(std::string_view arguments, const Written& slice,
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

void PartEditor::put_call(std::string_view arguments) {
  const read::Event& e = call_;
  if (member_->asked != nullptr && !member_->asked->calls().call(*member_->process, e)) return;
  const Placement& to = *member_->to;
  const CallNames::Name name = names_.of(e.name, e.bucket, e.bytes);
  const Written slice = written(e.thread, e.ts_ns, e.dur_ns);
  out_->line() << "{\"name\":\"" << name.what << name.size << "\",\"cat\":\""
               << bucket_name(e.bucket) << "\",";
  if (e.unfinished) {
    (*out_ << "\"ph\":\"B\",\"pid\":" << to.pid << ",\"tid\":" << e.thread << ",\"ts\":")
        .micros(to.moved(e.ts_ns));
  } else {
    put_slice(slice);
  }
  *out_ << ",\"cname\":\"" << color_of(e.bucket) << "\",\"args\":{\"op\":\""
        << std::string_view(e.name) << "\",";
  put_arguments(arguments, slice, e.ts_ns);
  if (e.unfinished || e.failed || e.captured) return;
  add(moved_, {to.pid, to.moved(e.ts_ns) / timeline_->window_ns(), e.bucket, e.bytes});
  const DrawnCall* call = rank_ == nullptr ? nullptr : rank_->call(e.ts_ns, e.thread, near_call_);
  if (call != nullptr && call->on_device == 0) put_turn(*call, slice);
}

// `queued` says how long before its time a call was made, on the axis of the merged trace.
void PartEditor::put_time(std::string_view arguments) {
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
  out_->line() << "{\"cat\":\"DEVICE\",\"name\":\"";
  if (bucket) {
    const auto name = names_.of(t.name, *bucket, call ? call->size() : std::nullopt);
    *out_ << name.what << name.size << "\",";
    put_slice(slice);
    *out_ << ",\"cname\":\"" << color_of(*bucket) << "\",\"args\":{\"op\":\""
          << std::string_view(t.name) << "\",";
  } else {
    *out_ << std::string_view(t.name) << "\",";
    put_slice(slice);
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
  put_end_of_arrow(kStart, "to the device", id, {t.thread, to.moved(called_ns)});
  put_end_of_arrow(kEnd, "to the device", id,
                   {t.lane, to.moved(touched_ns(t.ts_ns, slice.dur_ns, false))});
  if (call->on_device != 0) put_turn(*call, slice);
}

void PartEditor::put_busy() {
  if (!member_->wants(busy_.ts_ns, busy_.ts_ns + busy_.dur_ns)) return;
  const Written slice = written(busy_.lane, busy_.ts_ns, busy_.dur_ns);
  out_->line() << "{\"cat\":\"BUSY\",\"name\":\"compute\",";
  put_slice(slice);
  *out_ << ",\"args\":{\"device\":" << busy_.device;
  // A device computes on from one step into the next, so it has no position.
  put_arguments(busy_.unsure ? ",\"unsure\":true}}" : "}}", slice, kNowhere);
}

void PartEditor::put_turn(const DrawnCall& call, const Written& slice) {
  using enum Meets::Turn;
  const auto turn = static_cast<Meets::Turn>(call.turn);
  if (turn == none) return;
  const std::int64_t at = touched_ns(slice.ts_ns, slice.dur_ns, call.receives != 0);
  put_end_of_arrow(turn == first  ? kStart
                   : turn == last ? kEnd
                                  : kStep,
                   call.message != 0 ? "message" : "collective", call.meet,
                   {slice.lane, member_->to->moved(at)});
}

// An arrow's id is a number that no other arrow of the trace has: viewers take no other, and no
// larger one than 2^53.
void PartEditor::put_end_of_arrow(std::string_view phase, std::string_view name, std::int64_t id,
                                  const Touch& at) {
  (out_->line() << "{\"cat\":\"FLOW\",\"name\":\"" << name << "\",\"ph\":" << phase << ",\"id\":"
                << id << ",\"pid\":" << member_->to->pid << ",\"tid\":" << at.lane << ",\"ts\":")
          .micros(at.ts_ns)
      << "}";
}

}  // namespace tprof::trace_export
