// The lines of NVTX ranges, scopes and counters, and of metrics, which are counters. The program
// names them, so their lines begin differently from all others: no name can imitate a line of ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/counters.h"
#include "interpose/write/lines.h"

namespace tprof {

inline void range_lane_line(Text& out, const View& view, std::uint32_t tid,
                            std::string_view thread) {
  open_line(out, view, LineKind::thread_name, kRangeLane + tid) << ",\"args\":{\"name\":";
  char name[sizeof kRangeCategory + 1 + kThreadNameBytes];
  FixedText text(name);
  text << kRangeCategory << " " << prefix(thread, kThreadNameBytes);
  out.string(text.view()) << "}},\n";
}

// A range that may overlap others of its lane has an `id`, which joins its two lines.
inline void open_range_line(Text& out, const View& view, const OpenRange& range, char phase,
                            std::uint64_t ts_ns, std::uint64_t id) {
  out << "{\"cat\":\"" << kRangeCategory << "\",\"ph\":\"" << phase << "\",\"name\":";
  const std::string_view name = range_name(range);
  out.string(name.empty() ? "(no name)" : name)
      << ",\"pid\":" << view.head().line_pid << ",\"tid\":" << kRangeLane + range.tid;
  if (id != 0) out << ",\"id2\":{\"local\":\"" << id << "\"}";
  out << ",\"ts\":";
  timestamp(out, view, ts_ns);
}

// Returns an empty name if there is none.
inline std::string_view category_name(const View& view, std::uint8_t domain,
                                      std::uint32_t category) {
  const Head& head = view.head();
  const std::uint32_t known = head.range_categories.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(known, kMaxRangeCategories); ++i) {
    const RangeCategory& entry = head.range_category[i];
    if (entry.category == category && entry.domain == domain) return bounded_text(entry.name);
  }
  return {};
}

inline void payload(Text& out, RangePayload type, std::uint64_t bits) {
  double real = 0;
  std::memcpy(&real, &bits, sizeof real);
  if (type == RangePayload::real) {
    put_real(out, real);
  } else if (type == RangePayload::integer) {
    out << static_cast<std::int64_t>(bits);
  } else {
    out << bits;
  }
}

inline void range_args(Text& out, const View& view, const OpenRange& range, bool unfinished) {
  out << ",\"args\":{";
  Comma comma;
  const auto key = [&](std::string_view name) -> Text& {
    return out << comma.next() << '"' << name << "\":";
  };
  if (unfinished) key("unfinished") << "true";
  if (range.domain != kDefaultDomain) {
    const RangeDomain* domain =
        range.domain < kMaxRangeDomains ? &view.head().range_domain[range.domain] : nullptr;
    const bool known = domain != nullptr && domain->known.load(std::memory_order_acquire) != 0;
    known ? key("domain").string(bounded_text(domain->name)) : key("domain") << "null";
  }
  if (range.device != 0) key("device") << std::uint32_t{range.device};
  const RangeAttributes& given = range.attributes;
  if ((range.given & kGivenCategory) != 0) {
    const std::string_view name = category_name(view, range.domain, given.category);
    name.empty() ? key("category") << given.category : key("category").string(name);
  }
  if ((range.given & kGivenColor) != 0) (key("color") << "\"#").hex(given.color, 6) << '"';
  if (payload_of(range.given) != RangePayload::none) {
    payload(key("payload"), payload_of(range.given), given.payload);
  }
  if ((range.given & kGivenAmounts) != 0) {
    if (range.amounts.elements != 0) key("elements") << range.amounts.elements;
    if (range.amounts.bytes != 0) key("bytes") << range.amounts.bytes;
  }
  if ((range.given & kGivenError) != 0) key("error").string(range_error(range));
  out << "}},\n";
}

inline void range_line(Text& out, const View& view, const OpenRange& range, RangeKind kind,
                       std::uint64_t dur_ns, std::uint64_t id) {
  if (kind == RangeKind::free) {
    for (const char phase : {'b', 'e'}) {
      const std::uint64_t ts = range.start_ns + (phase == 'e' ? dur_ns : 0);
      open_range_line(out, view, range, phase, ts, id);
      range_args(out, view, range, false);
    }
    return;
  }
  const bool mark = kind == RangeKind::mark;
  open_range_line(out, view, range, mark ? 'i' : 'X', range.start_ns, 0);
  mark ? out << ",\"s\":\"t\"" : (out << ",\"dur\":").micros(dur_ns);
  range_args(out, view, range, false);
}

// Reads the bytes of a first record and of the records that continue it. `next`, the place after
// the first, moves past them. Returns false if the records are invalid.
inline bool read_bytes(const RingNow& ring, const RangeRecord& first, std::uint64_t& next, char* to,
                       std::uint32_t bytes) {
  RangeRecord part = first;
  for (std::uint32_t at = 0; at < bytes; at += RangeRecord::kBytes) {
    if (at != 0) {
      if (next == ring.head) return false;
      const Record r = ring[next];
      std::memcpy(&part, &r, sizeof part);
      if (part.function != kMetaRangeMore) return false;
      ++next;
    }
    std::memcpy(to + at, part.bytes, RangeRecord::kBytes);
  }
  return true;
}

// Reads a closed range.
inline bool read_range(const RingNow& ring, const RangeRecord& first, std::uint64_t& next,
                       OpenRange& range) {
  range.start_ns = first.start_ns;
  range.tid = first.tid;
  range.domain = first.domain;
  range.device = first.device;
  range.length = static_cast<std::uint8_t>(std::min<std::uint64_t>(first.length, kMaxRangeName));
  range.given = first.given;
  char* const to = reinterpret_cast<char*>(&range) + range_bytes_at(range);
  return read_bytes(ring, first, next, to, range_bytes(range));
}

// Writes an open range. `id`: 0 for a pushed one.
inline void unfinished_range_line(Text& out, const View& view, const OpenRange& range,
                                  std::uint64_t id) {
  open_range_line(out, view, range, id == 0 ? 'B' : 'b', range.start_ns, id);
  range_args(out, view, range, true);
}

// Calls f(range, started) for every open range: first the pushed ones of each thread, outermost
// first, then the started ones. Their threads may be running. Skips what an earlier thread left
// open in an area.
template <typename F>
void each_open_range(const View& view, F&& f) {
  const auto if_open = [&](const OpenRange& shared, const ThreadArea* owner) {
    const auto r = copy_in_use(shared);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (r.start_ns == 0) return;
    if (owner != nullptr && r.tid != owner->tid.load(std::memory_order_relaxed)) return;
    const ThreadArea* closer = owner;
    if (owner == nullptr && r.closed != 0) closer = view.at<ThreadArea>(r.closer);
    const std::uint64_t committed =
        closer == nullptr ? UINT64_MAX : closer->committed.load(std::memory_order_acquire);
    if (r.closed != 0 && r.closed <= committed) return;
    const auto again = copy_in_use(shared);
    if (again.start_ns == r.start_ns && again.closed == r.closed) f(r, owner == nullptr);
  };
  view.each_thread([&](const ThreadArea& t, std::uint32_t) {
    for (const OpenRange& r : t.range) if_open(r, &t);
  });
  for (const OpenRange& r : view.head().started_range) if_open(r, nullptr);
}

// Writes an integer if the value is one that a double represents exactly.
inline void counter_value(Text& out, double v) {
  constexpr double kExact = 1LL << 53;
  const bool integer =
      v >= -kExact && v <= kExact && v == static_cast<double>(static_cast<std::int64_t>(v));
  integer ? out << static_cast<std::int64_t>(v) : put_real(out, v);
}

// `ts_ns`: after the file's base. `lane`: the lane of the thread's ranges; 0: the process's, for
// metrics.
inline void counter_line(Text& out, const Counter& counter, std::int64_t pid, std::uint64_t ts_ns,
                         std::uint32_t lane) {
  out << "{\"cat\":\"" << kCounterCategory << "\",\"ph\":\"C\",\"name\":";
  const std::string_view name = each_value(counter, [](std::string_view, double) {});
  out.string(name.empty() ? "(no name)" : name)
      << ",\"pid\":" << pid << ",\"tid\":" << lane << ",\"ts\":";
  out.micros(ts_ns) << ",\"args\":{";
  Comma comma;
  each_value(counter, [&](std::string_view key, double value) {
    (out << comma.next()).string(key) << ':';
    counter_value(out, value);
  });
  out << "}},\n";
}

inline void counter_line(Text& out, const View& view, const Counter& counter, std::uint64_t at_ns,
                         std::uint32_t lane) {
  const Head& head = view.head();
  counter_line(out, counter, head.line_pid,
               at_ns > head.base_mono_ns ? at_ns - head.base_mono_ns : 0, lane);
}

inline bool read_counter(const RingNow& ring, const RangeRecord& first, std::uint64_t& next,
                         Counter& counter) {
  counter.values = std::min<std::uint32_t>(first.kind, kMaxCounterValues);
  counter.length = std::min<std::uint32_t>(first.length, kMaxCounterNames);
  char* const to = reinterpret_cast<char*>(&counter) + counter_bytes_at(counter.values);
  return read_bytes(ring, first, next, to, counter_bytes(counter));
}

}  // namespace tprof
