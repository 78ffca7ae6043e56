// The lines of NVTX ranges. A range is named by the program, so its lines begin otherwise than all
// others: no name can make one look like a line of ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/lines/lines.h"

namespace tprof {

inline void range_lane_line(Text& out, const View& view, std::uint32_t tid,
                            std::string_view thread) {
  open_line(out, view, "thread_name", 'M', kRangeLane + tid) << ",\"args\":{\"name\":";
  char name[sizeof kRangeCategory + kThreadNameBytes] = "NVTX ";
  thread = prefix(thread, kThreadNameBytes);
  std::memcpy(name + sizeof kRangeCategory, thread.data(), thread.size());
  out.string({name, sizeof kRangeCategory + thread.size()}) << "}},\n";
}

// What of a range stands in each of its lines.
struct RangeText {
  std::string_view name;
  std::uint32_t tid;
  std::uint8_t domain;
  std::uint8_t device;
};

// A range that may overlap others of its lane has a number, `id`, by which its two lines are one.
inline void open_range_line(Text& out, const View& view, const RangeText& range, char phase,
                            std::uint64_t ts_ns, std::uint64_t id) {
  out << "{\"cat\":\"" << kRangeCategory << "\",\"ph\":\"" << phase << "\",\"name\":";
  out.string(range.name.empty() ? "(no name)" : range.name)
      << ",\"pid\":" << view.head().line_pid << ",\"tid\":" << kRangeLane + range.tid;
  if (id != 0) out << ",\"id2\":{\"local\":\"" << id << "\"}";
  out << ",\"ts\":";
  timestamp(out, view, ts_ns);
}

inline void range_args(Text& out, const View& view, const RangeText& range, bool unfinished) {
  out << ",\"args\":{";
  bool first = true;
  const auto key = [&](std::string_view name) -> Text& {
    out << (first ? "\"" : ",\"") << name << "\":";
    first = false;
    return out;
  };
  if (unfinished) key("unfinished") << "true";
  if (range.domain != kDefaultDomain) {
    const RangeDomain* domain =
        range.domain < kMaxRangeDomains ? &view.head().range_domain[range.domain] : nullptr;
    key("domain");
    if (domain == nullptr || domain->known.load(std::memory_order_acquire) == 0) {
      out << "null";
    } else {
      out.string({domain->name, strnlen(domain->name, sizeof domain->name)});
    }
  }
  if (range.device != 0) key("device") << std::uint32_t{range.device};
  out << "}},\n";
}

inline void range_line(Text& out, const View& view, const RangeRecord& r, const RangeText& range,
                       std::uint64_t id) {
  const auto kind = static_cast<RangeKind>(r.kind);
  // One that was pushed before the session begins with it.
  const std::uint64_t start_ns = std::max(r.start_ns, view.head().base_mono_ns);
  const std::uint64_t end_ns = std::max(r.start_ns + r.dur_ns, start_ns);
  if (kind == RangeKind::free) {
    open_range_line(out, view, range, 'b', start_ns, id);
    range_args(out, view, range, false);
    open_range_line(out, view, range, 'e', end_ns, id);
    range_args(out, view, range, false);
    return;
  }
  const bool mark = kind == RangeKind::mark;
  open_range_line(out, view, range, mark ? 'i' : 'X', start_ns, 0);
  if (mark) {
    out << ",\"s\":\"t\"";
  } else {
    out << ",\"dur\":";
    out.micros(end_ns - start_ns);
  }
  range_args(out, view, range, false);
}

// One that has not ended. `id`: 0 for one that was pushed.
inline void unfinished_range_line(Text& out, const View& view, const OpenRange& r,
                                  std::uint64_t id) {
  const std::size_t length = r.length < sizeof r.name ? r.length : sizeof r.name;
  const RangeText range{{r.name, length}, r.tid, r.domain, r.device};
  open_range_line(out, view, range, id == 0 ? 'B' : 'b', r.start_ns, id);
  range_args(out, view, range, true);
}

// Calls f(range, started) for every range that is open: of each thread outermost first, then those
// that were started by themselves. Their threads may be at work.
template <typename F>
void each_open_range(const View& view, F&& f) {
  const auto look = [&](const OpenRange& at, const ThreadArea* closer, bool started) {
    const auto r = copy_in_use(at);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (r.start_ns == 0) return;
    if (started && r.closed != 0) closer = view.at<ThreadArea>(r.closer);
    const std::uint64_t committed =
        closer == nullptr ? UINT64_MAX : closer->committed.load(std::memory_order_acquire);
    if (r.closed != 0 && r.closed <= committed) return;
    const auto again = copy_in_use(at);
    if (again.start_ns == r.start_ns && again.closed == r.closed) f(r, started);
  };
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    if (t == nullptr || t->tid.load(std::memory_order_relaxed) == 0) continue;
    for (const OpenRange& r : t->range) look(r, t, false);
  }
  for (const OpenRange& r : view.head().started_range) look(r, nullptr, true);
}

}  // namespace tprof
