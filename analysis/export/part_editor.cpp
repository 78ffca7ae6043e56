#include "export/part_editor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "read/error.h"
#include "read/json.h"
#include "read/metadata.h"
#include "read/process.h"

namespace tprof::trace_export {
namespace {

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

read::object parsed(const read::Line& line, simdjson::dom::parser& parser) {
  read::object event;
  if (parser.parse(line.text.data(), line.text.size(), false).get(event) != simdjson::SUCCESS) {
    throw not_an_object();
  }
  return event;
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
  const read::object args = read::object_of(parsed(line, parser), "args");
  auto device = read::optional_integer(args, "device");
  if (range && !device) device = 0;
  return {&lane_of(last, read::optional_integer(args, "comm"), device)};
}

}  // namespace

void PartEditor::go_to(const Member& member) {
  if (member.process == process_) return;
  process_ = member.process;
  rank_ = timeline_->of(*process_);
  near_call_ = near_time_ = 0;
}

bool PartEditor::wants(const read::Line& line, const Member& member) {
  return member.to && (!member.to->keeps || member.to->keeps(line, parser_));
}

std::int64_t PartEditor::most_arrows(const read::Block& block) {
  std::int64_t all = 0;
  const std::string_view text = block.text;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    all += read::is_device_time(text.substr(at)) ? 1 : 0;
  }
  return all;
}

void PartEditor::edit(const Part& part, const read::Block& block, const Timeline& timeline,
                      std::int64_t first_id, std::string& out) {
  timeline_ = &timeline;
  out_ = &out;
  process_ = nullptr;
  moved_.clear();
  next_id_ = first_id - 1;
  read::each_line(block, [&](const read::Line& line) {
    const Member& member = member_at(part, line.offset);
    if (read::is_device_time(line.text)) ++next_id_;
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
  if (line.text.size() > Pen::kLongest) return false;
  read::OwnArguments own;
  if (line.text.starts_with(kNameFirst)) {
    if (!own_.call(line.text, call_, &own)) return false;
    const Member& member = lane_of(last, call_.comm, call_.device);
    if (wants(line, member)) put_call(member, own.all);
    return true;
  }
  if (read::is_device_time(line.text)) {
    if (!own_.device_time(line.text, time_, &own)) return false;
    const Member& member = lane_of(last, time_.comm, time_.device);
    if (wants(line, member)) put_time(member, own.all);
    return true;
  }
  if (!read::is_busy(line.text) || !read::OwnLines::busy(line.text, busy_)) return false;
  const Member& member = lane_of(last, std::nullopt, busy_.device);
  if (wants(line, member)) put_busy(member);
  return true;
}

// Any line.
void PartEditor::put(const read::Line& line, const Member& member) {
  if (!wants(line, member)) return;
  go_to(member);
  const bool time = read::is_device_time(line.text);
  if (line.text.size() <= Pen::kLongest && (time || !is_no_event(line.text))) {
    const read::object event = parsed(line, parser_);
    auto call = time ? std::nullopt : read::call_of(event);
    if (time) time_ = read::device_time_of(event);
    if (time ? is_function(time_.name) : call && !call->launch && is_function(call->name)) {
      arguments_.clear();
      editor_.arguments(line, arguments_);
      if (time) return put_time(member, arguments_);
      call_ = *std::move(call);
      return put_call(member, arguments_);
    }
  }
  const std::size_t size = out_->size();
  *out_ += ",\n";
  if (!editor_.edit(line, *member.to, *out_, rank_ == nullptr ? nullptr : &rank_->slices)) {
    out_->resize(size);
  }
}

}  // namespace tprof::trace_export
