#include "read/events.h"

#include <algorithm>
#include <cmath>

#include "interpose/format/line_kinds.h"
#include "interpose/format/ranges.h"
#include "interpose/format/record.h"
#include "read/error.h"
#include "read/json.h"
#include "read/metadata.h"
#include "read/own_lines.h"
#include "read/process.h"

namespace tprof::read {
namespace {

// A quarter of the largest base_time_ns, so that the sum of a base and a few of these can't
// overflow.
constexpr double kLatestMicros = static_cast<double>(kLatestNs) / 4000;

std::int64_t time_ns(const object& o, std::string_view key) {
  double micros = 0;
  const auto e = find(o, key);
  if (!e || e->get(micros) != simdjson::SUCCESS || !std::isfinite(micros) ||
      std::abs(micros) > kLatestMicros) {
    throw Malformed("expected a time in \"" + std::string(key) + "\"");
  }
  return std::llround(micros * 1000);
}

// How long a slice was: in a merged trace it may be written shorter.
std::int64_t length_ns(const object& o, const object& args) {
  return time_ns(o, "dur") + (find(args, "cut") ? time_ns(args, "cut") : 0);
}

// Returns the event of a call or a graph launch, and nullopt for anything else. `top` holds its
// category and times.
std::optional<Event> event_of(const object& top, const object& args, std::string name,
                              bool unfinished) {
  const std::string bucket = text_or_empty(top, "cat");
  const auto* known = std::ranges::find(kBuckets, bucket, &BucketInfo::name);
  const bool launch = bucket == kGraphCategory;
  if (known == std::end(kBuckets) && !launch) return std::nullopt;
  const std::uint64_t result = count_or_0(args, "result");
  Event e;
  e.name = std::move(name);
  e.launch = launch;
  e.unfinished = unfinished;
  e.ts_ns = time_ns(top, "ts");
  e.dur_ns = unfinished ? 0 : length_ns(top, args);
  e.site = integer_or(args, "site", 0);
  if (args.at_key("stream").error() == simdjson::SUCCESS) {
    e.stream = optional_integer(args, "stream");
  }
  if (launch) {
    e.failed = result != 0;
    return e;
  }
  e.bucket = static_cast<Bucket>(known - kBuckets);
  e.captured = flag(args, "captured");
  e.failed = !accepted(e.bucket, result);
  e.bytes = count(args, "bytes");
  e.dtype = text_or_empty(args, "dtype");
  if (is_copy(e.bucket)) {
    if (e.dtype.empty()) e.dtype = "byte";
    e.count = e.bytes;
    e.device = optional_integer(args, "device");
    e.host_memory = host_memory(args);
    return e;
  }
  e.comm = optional_integer(args, "comm");
  e.numbered = e.comm && find(args, "seq");
  if (e.numbered) e.seq = count(args, "seq");
  e.count = count(args, "count");
  e.peer = optional_integer(args, "peer");
  e.group = optional_integer(args, "group").value_or(0);
  e.reduce = text_or_empty(args, "reduce");
  return e;
}

// The function that a line is of: in a merged trace the name is for people.
std::string function_of(const object& line, const object& args) {
  return find(args, "op") ? text(args, "op") : text(line, "name");
}

// Returns the event of a call's line, or of a `tprof_last` line, which has in its arguments what
// other lines have outside.
std::optional<Event> event_of(const object& line, bool last) {
  const std::string phase = last ? "X" : text_or_empty(line, "ph");
  if (phase != "X" && phase != "B") return std::nullopt;
  const object args = object_of(line, "args");
  auto e = last ? event_of(args, args, text(args, "function"), false)
                : event_of(line, args, function_of(line, args), phase == "B");
  if (e) e->thread = integer_or(line, "tid", 0);
  return e;
}

std::optional<Range::Phase> phase_of(const object& line, const object& args) {
  using enum Range::Phase;
  const std::string phase = text_or_empty(line, "ph");
  const bool begins = phase == "B" || phase == "b";
  if (flag(args, "unfinished")) return begins ? std::optional(open) : std::nullopt;
  if (phase == "X") return closed;
  if (phase == "b") return started;
  if (phase == "e") return ended;
  if (phase == "i") return mark;
  return std::nullopt;
}

Range range_of(const object& line, const object& args, Range::Phase phase) {
  Range r;
  r.phase = phase;
  // The writer truncates these. A longer one is not ours, and may be any number of megabytes.
  const auto short_text = [](std::string text) {
    if (text.size() > kMaxRangeName) text.resize(kMaxRangeName);
    return text;
  };
  r.name = short_text(text(line, "name"));
  if (find(args, "domain")) r.domain = short_text(text(args, "domain"));
  r.thread = integer_in(line, "tid", 0, kLatestNs) - std::int64_t{kRangeLane};
  r.ts_ns = time_ns(line, "ts");
  if (r.phase == Range::Phase::closed) r.dur_ns = length_ns(line, args);
  if (const auto category = find(args, "category"); category && category->is_string()) {
    r.category_name = short_text(text(args, "category"));
  } else if (category) {
    r.category = integer_in(args, "category", 1, UINT32_MAX);
  }
  r.color = short_text(text_or_empty(args, "color"));
  if (find(args, "payload")) r.payload = number(args, "payload");
  if (find(args, "elements")) r.elements = count(args, "elements");
  if (find(args, "bytes")) r.bytes = count(args, "bytes");
  r.error = short_text(text_or_empty(args, "error"));
  if (find(line, "id2")) r.id = short_text(text_or_empty(object_of(line, "id2"), "local"));
  return r;
}

Busy busy_of(const object& line) {
  const object args = object_of(line, "args");
  Busy b;
  b.device = integer(args, "device");
  b.ts_ns = time_ns(line, "ts");
  b.dur_ns = length_ns(line, args);
  b.unsure = flag(args, "unsure");
  b.lane = integer_or(line, "tid", 0);
  return b;
}

LifeCall life_of(const object& line) {
  const object args = object_of(line, "args");
  LifeCall c;
  c.name = function_of(line, args);
  c.unfinished = flag(args, "unfinished");
  c.grouped = find(args, "group").has_value();
  c.group_ends = !c.grouped || flag(args, "group_ends");
  c.ts_ns = time_ns(line, "ts");
  if (!c.unfinished) c.dur_ns = time_ns(line, "dur");
  c.thread = integer_or(line, "tid", 0);
  c.comm = optional_integer(args, "comm");
  c.id = text_or_empty(args, "id");
  c.seq = count(args, "seq");
  c.nranks = integer_or(args, "nranks", 0);
  c.rank = optional_integer(args, "rank");
  c.result = count_or_0(args, "result");
  return c;
}

bool any_lane(const Process& last, const std::function<bool(const Process&)>& wanted) {
  return std::any_of(&last - last.lane, &last + 1, std::ref(wanted));
}

}  // namespace

std::optional<Event> call_of(const object& line) {
  return event_of(line, false);
}

DeviceTime device_time_of(const object& line) {
  const object args = object_of(line, "args");
  DeviceTime t;
  t.name = function_of(line, args);
  t.comm = optional_integer(args, "comm");
  if (const auto seq = optional_integer(args, "seq")) t.seq = static_cast<std::uint64_t>(*seq);
  t.device = optional_integer(args, "device");
  t.launch = find(args, "graph").has_value();
  t.ts_ns = time_ns(line, "ts");
  t.dur_ns = length_ns(line, args);
  t.queued_ns = time_ns(args, "queued");
  if (find(args, "waited")) t.waited_ns = time_ns(args, "waited");
  t.calls = static_cast<std::uint64_t>(integer_or(args, "calls", 1));
  t.thread = integer(args, "call_tid");
  t.lane = integer(line, "tid");
  return t;
}

namespace {

void show_thread(const Trace& trace, const LineReader& reader, const Line& line,
                 simdjson::dom::parser& parser) {
  const Process* last = owner_at(trace, line.offset);
  if (last == nullptr) return;
  ThreadName thread;
  try {
    object o;
    if (parser.parse(line.text.data(), line.text.size(), false).get(o) != simdjson::SUCCESS) {
      throw Malformed("expected one JSON object on this line");
    }
    thread = {integer(o, "tid"), text(object_of(o, "args"), "name")};
  } catch (const Malformed& e) {
    throw BadInput(trace.source.file, line.offset, e.what());
  }
  for (const Process* p = last - last->lane; p <= last; ++p) {
    if (!reader.wanted || reader.wanted(*p)) reader.thread(*p, thread);
  }
}

}  // namespace

const Process* owner_at(const Trace& trace, std::uint64_t offset) {
  const auto next = std::ranges::upper_bound(trace.processes, offset, {}, &Process::offset);
  return next == trace.processes.begin() ? nullptr : &*std::prev(next);
}

void read_lines(const Trace& trace, const LineReader& reader) {
  simdjson::dom::parser parser;
  BlockReader blocks(trace.source);
  Block block;
  OwnLines own;
  Event own_event;
  DeviceTime own_time;
  const Process* current = nullptr;  // whose lines are read; the last of its lanes
  const auto go_on_to = [&](const Process* next) {
    if (reader.end && current != nullptr && next != current) {
      for (const Process* p = current - current->lane; p <= current; ++p) {
        if (!reader.wanted || reader.wanted(*p)) reader.end(*p);
      }
    }
    current = next;
  };
  // It is that of the line before; most lines have the same.
  struct Owner {
    const Process* last_lane = nullptr;
    std::uint64_t from = 1;  // offsets of its lines
    std::uint64_t until = 0;
    bool wanted = false;  // of any lane
  };
  Owner owner;
  const auto find_owner = [&](std::uint64_t offset) {
    if (offset >= owner.from && offset < owner.until) return;
    const auto next = std::ranges::upper_bound(trace.processes, offset, {}, &Process::offset);
    const bool any = next != trace.processes.begin();
    owner = {.last_lane = any ? &*std::prev(next) : nullptr,
             .from = any ? std::prev(next)->offset : 0,
             .until = next == trace.processes.end() ? UINT64_MAX : next->offset};
    owner.wanted = any && (!reader.wanted || any_lane(*owner.last_lane, reader.wanted));
  };
  // Null: nobody wants it.
  const auto lane_of = [&](const auto& comm, const auto& device) -> const Process* {
    const Process& lane = lane_of_call(*owner.last_lane, comm, device);
    return lane.lanes == 1 || !reader.wanted || reader.wanted(lane) ? &lane : nullptr;
  };
  const auto show = [&](Event& e, const auto& deliver) {
    const Process* lane = lane_of(e.comm, e.device);
    if (!deliver || lane == nullptr) return;
    e.chosen = !reader.chosen.call || e.launch || reader.chosen.call(*lane, e);
    deliver(*lane, e);
  };
  const auto show_time = [&](DeviceTime& t) {
    const Process* lane = lane_of(t.comm, t.device);
    if (lane == nullptr) return;
    t.chosen = !reader.chosen.time || reader.chosen.time(*lane, t);
    reader.device_time(*lane, t);
  };
  const auto show_busy = [&](const Busy& b) {
    const Process* lane = lane_of(std::optional<std::int64_t>(), std::optional(b.device));
    if (lane != nullptr) reader.busy(*lane, b);
  };
  while (blocks.next(block)) {
    each_line(block, [&](const Line& line) {
      // Most lines are calls, or begin with their category.
      const bool of_category = begins(line.text, "{\"cat\":\"");
      const bool last = !of_category && reader.last && is_line(line.text, LineKind::last);
      if (!of_category && is_metadata(line.text) && !last) {
        go_on_to(owner_at(trace, line.offset));  // a process begins with such a line
        if (reader.metadata) reader.metadata(line);
        return;
      }
      if (!of_category && begins(line.text, "{\"name\":\"thread_name\"")) {
        if (reader.thread) show_thread(trace, reader, line, parser);
        return;
      }
      const bool range = of_category && is_range(line.text);
      const bool timed = of_category && is_device_time(line.text);
      const bool busy = of_category && is_busy(line.text);
      const bool life = of_category && is_life(line.text);
      if (of_category && (is_of_merge(line.text) || is_other(line.text) || is_counter(line.text)))
        return;
      if (timed && !reader.device_time) return;
      if (busy && !reader.busy) return;
      if (life && !reader.life) return;
      const bool wanted_range = reader.range || (reader.open_range && !is_closed_range(line.text));
      if (range && !wanted_range) return;
      const bool event = !range && !timed && !busy && !life;
      if (event && (!reader.event || !line.text.starts_with(reader.event_start))) return;
      find_owner(line.offset);
      if (!owner.wanted) return;
      if (timed && own.device_time(line.text, own_time)) return show_time(own_time);
      Busy own_interval;
      if (busy && OwnLines::busy(line.text, own_interval)) return show_busy(own_interval);
      if (event && own.call(line.text, own_event)) return show(own_event, reader.event);
      try {
        object o;
        if (parser.parse(line.text.data(), line.text.size(), false).get(o) != simdjson::SUCCESS) {
          throw Malformed("expected one JSON object on this line");
        }
        if (range) {
          const object args = object_of(o, "args");
          const auto phase = phase_of(o, args);
          const bool wanted_phase = reader.range || phase == Range::Phase::open;
          if (!phase || !wanted_phase) return;
          const Range r = range_of(o, args, *phase);
          const auto device = optional_integer(args, "device");
          const Process* lane =
              lane_of(std::optional<std::int64_t>(), std::optional(device.value_or(0)));
          if (lane == nullptr) return;
          if (reader.range) reader.range(*lane, r);
          const bool pushed = r.phase == Range::Phase::open && r.id.empty();
          if (reader.open_range && pushed) reader.open_range(*lane, r);
          return;
        }
        if (timed) {
          auto t = device_time_of(o);
          return show_time(t);
        }
        if (busy) {
          return show_busy(busy_of(o));
        }
        if (life) {
          const LifeCall c = life_of(o);
          const Process* lane = lane_of(c.comm, std::optional<std::int64_t>());
          if (lane != nullptr) reader.life(*lane, c);
          return;
        }
        auto e = event_of(o, last);
        if (!e) return;
        show(*e, last ? reader.last : e->launch ? reader.launch : reader.event);
      } catch (const Malformed& e) {
        throw BadInput(block.file, line.offset, e.what());
      }
    });
  }
  go_on_to(nullptr);
}

}  // namespace tprof::read
