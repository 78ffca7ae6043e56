// The lines of counters: the program's, and metrics. Like ranges they are named by the program, and
// begin otherwise than all lines of ours.
#pragma once

#include <cstdint>

#include "interpose/base/real.h"
#include "interpose/format/counters.h"
#include "interpose/lines/lines.h"
#include "interpose/lines/range_lines.h"

namespace tprof {

// An integer where it is one that a double tells apart from its neighbours.
inline void counter_value(Text& out, double v) {
  constexpr double kExact = 1LL << 53;
  const bool integer =
      v >= -kExact && v <= kExact && v == static_cast<double>(static_cast<std::int64_t>(v));
  integer ? out << static_cast<std::int64_t>(v) : put_real(out, v);
}

// `lane`: the thread's among those of ranges; 0: of the process, what it did not tell itself.
inline void counter_line(Text& out, const View& view, const Counter& counter, std::uint64_t ts_ns,
                         std::uint32_t lane) {
  out << "{\"cat\":\"" << kCounterCategory << "\",\"ph\":\"C\",\"name\":";
  const std::string_view name = each_value(counter, [](std::string_view, double) {});
  out.string(name.empty() ? "(no name)" : name)
      << ",\"pid\":" << view.head().line_pid << ",\"tid\":" << lane << ",\"ts\":";
  timestamp(out, view, ts_ns) << ",\"args\":{";
  Comma comma;
  each_value(counter, [&](std::string_view key, double value) {
    (out << comma.next()).string(key) << ':';
    counter_value(out, value);
  });
  out << "}},\n";
}

inline bool read_counter(const Record* ring, std::uint64_t mask, std::uint64_t head,
                         const RangeRecord& first, std::uint64_t& next, Counter& counter) {
  counter.values = std::min<std::uint32_t>(first.kind, kMaxCounterValues);
  counter.length = std::min<std::uint32_t>(first.length, kMaxCounterNames);
  char* const to = reinterpret_cast<char*>(&counter) + counter_bytes_at(counter.values);
  return read_bytes(ring, mask, head, first, next, to, counter_bytes(counter));
}

}  // namespace tprof
