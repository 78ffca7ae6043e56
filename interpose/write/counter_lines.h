// The lines of counters: the program's, and metrics. The program names them, so, as with ranges,
// their lines begin differently from all lines of ours.
#pragma once

#include <cstdint>

#include "interpose/base/real.h"
#include "interpose/format/counters.h"
#include "interpose/write/lines.h"
#include "interpose/write/range_lines.h"

namespace tprof {

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
