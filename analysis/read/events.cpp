#include "read/events.h"

#include <utility>

#include "interpose/format/line_kinds.h"
#include "interpose/format/ranges.h"
#include "read/error.h"
#include "read/metadata.h"
#include "read/own_lines.h"
#include "read/process.h"

namespace tprof::read {
namespace {

// Sets the measured length of a slice, which a merged trace may draw shorter.
void fill_length(const Fields& line, const Fields& args, std::int64_t& ns) {
  std::int64_t cut = 0;
  line.need_time("dur", ns);
  args.may_time("cut", cut);
  ns += cut;
}

// Returns the function of a line. In a merged trace the name is for people.
text::Kept function_of(const Fields& line, const Fields& args) {
  return args.has("op") ? args.get<text::Kept>("op") : line.get<text::Kept>("name");
}

// Returns the event of a call or graph launch; nullopt for anything else. `top` holds its category
// and times.
std::optional<Event> event_of(const Fields& top, const Fields& args, bool unfinished) {
  const auto bucket = top.get_or<std::string_view>("cat");
  const auto* known = std::ranges::find(kBuckets, bucket, &BucketInfo::name);
  const bool launch = bucket == kGraphCategory;
  if (known == std::end(kBuckets) && !launch) return std::nullopt;
  const auto result = args.get_or<std::uint64_t>("result");
  Event e{.launch = launch};
  e.unfinished = unfinished;
  top.need_time("ts", e.ts_ns);
  if (!unfinished) fill_length(top, args, e.dur_ns);
  if (launch) {
    e.failed = result != 0;
    args.may("stream", e.stream, "site", e.site);
  } else {
    e.bucket = static_cast<Bucket>(known - kBuckets);
    e.failed = !accepted(e.bucket, result);
    args.may("captured", e.captured);
    if (!is_copy(e.bucket)) args.may("comm", e.comm);
    e.numbered = e.comm && args.has("seq");
    if (e.numbered) args.need("seq", e.seq);
    fill_call(args, e);
  }
  if (args.is_null("stream")) e.stream = std::nullopt;
  return e;
}

// Returns the event of a call's line, or of a `tprof_last` line, which has all fields in its
// arguments.
std::optional<Event> event_of(const Fields& line, bool last) {
  const auto phase = line.get_or<std::string_view>("ph");
  if (!last && phase != "X" && phase != "B") return std::nullopt;
  const auto args = line.get<Fields>("args");
  auto e = event_of(last ? args : line, args, !last && phase == "B");
  if (!e) return e;
  e->name = last ? args.get<text::Kept>("function") : function_of(line, args);
  line.may("tid", e->thread);
  return e;
}

std::optional<Range::Phase> phase_of(const Fields& line, const Fields& args) {
  using enum Range::Phase;
  const auto phase = line.get_or<std::string_view>("ph");
  const bool begins = phase == "B" || phase == "b";
  if (args.get_or<bool>("unfinished")) return begins ? std::optional(open) : std::nullopt;
  if (phase == "X") return closed;
  if (phase == "b") return started;
  if (phase == "e") return ended;
  if (phase == "i") return mark;
  return std::nullopt;
}

Range range_of(const Fields& line, const Fields& args, Range::Phase phase) {
  Range r;
  r.phase = phase;
  line.need("name", r.name);
  args.may("domain", r.domain);
  line.need_in({0, kLatestNs}, "tid", r.thread);
  r.thread -= std::int64_t{kRangeLane};
  line.need_time("ts", r.ts_ns);
  if (r.phase == Range::Phase::closed) fill_length(line, args, r.dur_ns);
  if (const auto category = args.find("category"); category && category->is_string()) {
    args.need("category", r.category_name);
  } else if (category) {
    args.need_in({1, UINT32_MAX}, "category", r.category);
  }
  args.may("color", r.color, "payload", r.payload, "elements", r.elements, "bytes", r.bytes,
           "error", r.error);
  if (line.has("id2")) line.get<Fields>("id2").may("local", r.id);
  // The writer truncates these. A longer one is not ours and may have megabytes.
  for (std::string* text :
       {&r.name, r.domain ? &*r.domain : &r.name, &r.category_name, &r.color, &r.error, &r.id}) {
    if (text->size() > kMaxRangeName) text->resize(kMaxRangeName);
  }
  return r;
}

Busy busy_of(const Fields& line) {
  const auto args = line.get<Fields>("args");
  Busy b;
  line.need_time("ts", b.ts_ns);
  fill_length(line, args, b.dur_ns);
  line.may("tid", b.lane);
  fill_busy(args, b);
  return b;
}

LifeCall life_of(const Fields& line) {
  const auto args = line.get<Fields>("args");
  LifeCall c;
  c.name = function_of(line, args);
  args.may("unfinished", c.unfinished);
  c.grouped = args.has("group");
  c.group_ends = !c.grouped || args.get_or<bool>("group_ends");
  line.need_time("ts", c.ts_ns);
  if (!c.unfinished) line.need_time("dur", c.dur_ns);
  line.may("tid", c.thread);
  args.may("comm", c.comm, "id", c.id, "nranks", c.nranks, "rank", c.rank, "result", c.result);
  args.need("seq", c.seq);
  return c;
}

class Walk {
 public:
  Walk(const Trace& trace, const LineReader& reader) : trace_(trace), reader_(reader) {}

  // Tells the kind of a line by its beginning. Most lines are calls, or begin with their category.
  void line(const Line& line) {
    const std::string_view text = line.text;
    if (begins(text, "{\"cat\":\"")) {
      if (is_device_time(text)) return take(line, reader_.device_time, &Walk::show_time);
      if (is_busy(text)) return take(line, reader_.busy, &Walk::show_busy);
      if (is_range(text)) return take(line, reader_.range, &Walk::show_range);
      if (is_life(text)) return take(line, reader_.life, &Walk::show_life);
      if (is_of_merge(text) || is_other(text) || is_counter(text)) return;
    } else if (is_metadata(text)) {
      const bool last = reader_.last && is_line(text, LineKind::last);
      return last ? take(line, reader_.last, &Walk::show_last) : metadata(line);
    } else if (begins(text, "{\"name\":\"thread_name\"")) {
      return take(line, reader_.thread, &Walk::show_thread);
    }
    take(line, reader_.event, &Walk::show_call);
  }
  void end() { go_on_to(nullptr); }

 private:
  // Passes the line on if lines of its kind and process are wanted.
  template <typename F>
  void take(const Line& line, const F& wanted, void (Walk::*with)(std::string_view)) {
    if (!wanted) return;
    find_owner(line.offset);
    if (owner_ != nullptr && wanted_) (this->*with)(line.text);
  }
  Fields json(std::string_view text) { return object_in(parser_, text, true); }

  void metadata(const Line& line) {
    go_on_to(owner_at(trace_, line.offset));  // a header begins another process
    if (!reader_.metadata || current_ == nullptr) return;
    each_lane(current_, [&](const Process& p) { reader_.metadata(p, line); });
  }
  void show_call(std::string_view text) {
    if (own_lines::call(text, event_)) return show(event_, reader_.event);
    if (auto e = event_of(json(text), false)) show(*e, e->launch ? reader_.launch : reader_.event);
  }
  void show_last(std::string_view text) {
    if (auto e = event_of(json(text), true)) show(*e, reader_.last);
  }
  void show_thread(std::string_view text) {
    const Fields line = json(text);
    const ThreadName thread{line.get<std::int64_t>("tid"),
                            line.get<Fields>("args").get<std::string>("name")};
    each_lane(owner_, [&](const Process& p) { reader_.thread(p, thread); });
  }
  void show_life(std::string_view text) {
    const LifeCall c = life_of(json(text));
    if (const Process* lane = lane_of(c.comm, {})) reader_.life(*lane, c);
  }
  void show(Event& e, const std::function<void(const Process&, const Event&)>& deliver) {
    const Process* lane = lane_of(e.comm, e.device);
    if (!deliver || lane == nullptr) return;
    e.chosen = !reader_.chosen.call || e.launch || reader_.chosen.call(*lane, e);
    deliver(*lane, e);
  }
  void show_time(std::string_view text) {
    DeviceTime& t = time_;
    if (!own_lines::device_time(text, t)) t = device_time_of(json(text));
    const Process* lane = lane_of(t.comm, t.device);
    if (lane == nullptr) return;
    t.chosen = !reader_.chosen.time || reader_.chosen.time(*lane, t);
    reader_.device_time(*lane, t);
  }
  void show_busy(std::string_view text) {
    Busy b;
    if (!own_lines::busy(text, b)) b = busy_of(json(text));
    if (const Process* lane = lane_of({}, b.device)) reader_.busy(*lane, b);
  }
  void show_range(std::string_view text) {
    const Fields line = json(text);
    const auto args = line.get<Fields>("args");
    const auto phase = phase_of(line, args);
    const Process* lane = lane_of({}, args.get_or<std::int64_t>("device"));
    if (phase && lane != nullptr) reader_.range(*lane, range_of(line, args, *phase));
  }

  bool wants(const Process& p) const { return !reader_.wanted || reader_.wanted(p); }
  // Null: not wanted.
  const Process* lane_of(const std::optional<std::int64_t>& comm,
                         const std::optional<std::int64_t>& device) const {
    const Process& lane = lane_of_call(*owner_, comm, device);
    return lane.lanes == 1 || wants(lane) ? &lane : nullptr;
  }
  template <typename F>
  void each_lane(const Process* last, F&& f) const {
    for (const Process* p = last - last->lane; p <= last; ++p) {
      if (wants(*p)) f(*p);
    }
  }
  void go_on_to(const Process* next) {
    const Process* before = std::exchange(current_, next);
    if (reader_.end && before != nullptr && next != before) each_lane(before, reader_.end);
  }
  // Most lines have the same owner as the line before.
  void find_owner(std::uint64_t offset) {
    if (offset >= from_ && offset < until_) return;
    owner_ = owner_at(trace_, offset);
    const Process* begin = trace_.processes.data();
    const Process* next = owner_ == nullptr ? begin : owner_ + 1;
    from_ = owner_ == nullptr ? 0 : owner_->offset;
    until_ = next == begin + trace_.processes.size() ? UINT64_MAX : next->offset;
    wanted_ = false;
    if (owner_ != nullptr) each_lane(owner_, [&](const Process&) { wanted_ = true; });
  }

  const Trace& trace_;
  const LineReader& reader_;
  simdjson::dom::parser parser_;
  Event event_;
  DeviceTime time_;
  const Process* current_ = nullptr;  // whose lines are being read: its last lane
  const Process* owner_ = nullptr;    // of the current line: its last lane
  std::uint64_t from_ = 1;            // offsets of its lines
  std::uint64_t until_ = 0;
  bool wanted_ = false;  // any of its lanes
};

}  // namespace

std::optional<Event> call_of(const Fields& line) {
  return event_of(line, false);
}

DeviceTime device_time_of(const Fields& line) {
  const auto args = line.get<Fields>("args");
  DeviceTime t;
  t.name = function_of(line, args);
  t.launch = args.has("graph");
  line.need_time("ts", t.ts_ns);
  fill_length(line, args, t.dur_ns);
  line.need("tid", t.lane);
  fill_time(args, t);
  return t;
}

Amounts amounts_of(const Event& e, const DeviceTime* t) {
  const std::uint64_t size = element_size(e.dtype);
  Amounts one = {.calls = 1,
                 .count = e.count,
                 .elements = size == 0 ? 0 : e.bytes / size,
                 .bytes = e.bytes,
                 .host_ns = not_below_0(e.dur_ns),
                 .host_ns_max = not_below_0(e.dur_ns)};
  if (t != nullptr && t->calls != 0) {
    one.device_timed = t->calls;
    one.device_ns = not_below_0(t->dur_ns);
    one.device_ns_max = one.device_ns / t->calls;
    one.device_bytes = t->calls * e.bytes;
  }
  return one;
}

const Process* owner_at(const Trace& trace, std::uint64_t offset) {
  const auto next = std::ranges::upper_bound(trace.processes, offset, {}, &Process::offset);
  return next == trace.processes.begin() ? nullptr : &*std::prev(next);
}

void read_lines(const Trace& trace, const LineReader& reader) {
  BlockReader blocks(trace.source);
  Walk walk(trace, reader);
  for (Block block; blocks.next(block);) {
    each_line(block, [&](const Line& line) {
      try {
        walk.line(line);
      } catch (const Malformed& e) {
        throw BadInput(block.file, line.offset, e.what());
      }
    });
  }
  walk.end();
}

}  // namespace tprof::read
