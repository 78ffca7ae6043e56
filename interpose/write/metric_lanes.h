// Metrics: what files of /proc say, and the counters that the lines show of two readings.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/counters.h"
#include "interpose/format/metrics.h"

namespace tprof::metrics {

// Returns a counter's growth. kNotRead: it is not known, or the counter was reset (a disk was
// removed).
inline std::uint64_t growth(std::uint64_t from, std::uint64_t to) {
  return from == kNotRead || to == kNotRead || to < from ? kNotRead : to - from;
}

// round() of libm, for non-negative values.
inline double rounded(double v) {
  constexpr double kMost = 1LL << 53;  // larger values have no fraction
  if (v >= kMost) return v;
  const auto below = static_cast<double>(static_cast<std::int64_t>(v));
  return v - below < 0.5 ? below : below + 1;
}

// Returns false if the value is not known. `before` is null if there is no earlier reading for
// growth.
template <typename Reading>
bool value_of(const MetricValue<Reading>& v, const Reading* before, const Reading& now,
              double& value) {
  const std::uint64_t level = now.*v.number;
  if (v.is == MetricIs::level || v.is == MetricIs::thousandth) {
    value = static_cast<double>(level) / (v.is == MetricIs::thousandth ? 1e3 : 1);
    return level != kNotRead;
  }
  if (before == nullptr) return false;
  const bool share = v.is == MetricIs::share;
  const std::uint64_t Reading::*const of = share ? v.of : &Reading::at_ns;
  const std::uint64_t grown = growth(before->*v.number, level);
  const std::uint64_t against = growth(before->*of, now.*of);
  if (grown == kNotRead || against == kNotRead || against == 0) return false;
  const double ratio = static_cast<double>(grown) / static_cast<double>(against);
  // A share has one decimal, a rate none.
  value = share ? rounded(ratio * 1e3) / 10 : rounded(ratio * 1e9);
  return true;
}

// True if the names of every lane fit.
template <typename Reading>
constexpr bool names_fit(std::size_t prefix) {
  for (const MetricLane<Reading>& lane : kLanes<Reading>) {
    std::size_t size = prefix + lane.name.size() + 1;
    for (const MetricValue<Reading>& v : lane.value) size += v.key.size() + 1;
    if (size > kMaxCounterNames) return false;
  }
  return kMostMetricValues <= kMaxCounterValues;
}
static_assert(names_fit<ProcessMetrics>(0));

inline void add_text(Counter& to, std::string_view text) {
  std::memcpy(to.names + to.length, text.data(), text.size());
  to.length += static_cast<std::uint32_t>(text.size());
}
inline void add_name(Counter& to, std::string_view name) {
  add_text(to, name);
  to.names[to.length++] = '\0';
}

// Calls f(counter) for each lane with a known value. `prefix` begins the lanes' names.
template <typename Reading, typename F>
void each_lane(const Reading* before, const Reading& now, std::string_view prefix, F&& f) {
  for (const MetricLane<Reading>& lane : kLanes<Reading>) {
    double known[kMostMetricValues];
    Counter c{};
    add_text(c, prefix);
    add_name(c, lane.name);
    for (const MetricValue<Reading>& v : lane.value) {
      if (v.key.empty() || !value_of(v, before, now, known[c.values])) continue;
      add_name(c, v.key);
      ++c.values;
    }
    if (c.values == 0) continue;
    std::memcpy(c.value + kMaxCounterValues - c.values, known, c.values * sizeof known[0]);
    f(c);
  }
}

// Readers of the files of /proc. Missing numbers stay kNotRead.

// Returns a file's text. Empty: it can't be read, or is too long, so that sums would be wrong.
template <std::size_t N>
std::string_view whole_text(int file, char (&room)[N]) {
  std::size_t size = 0;
  for (ssize_t n = 0; size < N; size += static_cast<std::size_t>(n)) {
    n = pread(file, room + size, N - size, static_cast<off_t>(size));
    if (n < 0) return {};
    if (n == 0) return {room, size};
  }
  return {};
}

// Removes and returns the text before the first `end`.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::string_view taken = prefix(text, text.find(end));
  text = without_prefix(text, taken.size() + 1);
  return taken;
}

inline std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  return take_until(text, ' ');
}

// Takes the next number of a line. kNotRead: there is none.
inline std::uint64_t take_number(std::string_view& text) {
  const std::string_view word = take_word(text);
  std::uint64_t n = 0;
  return parse_number(word, n) ? n : kNotRead;
}

// Finds the number of `key` in lines such as "VmRSS: 1728 kB". `unit`: its unit in bytes.
inline std::uint64_t number_of(std::string_view text, std::string_view key,
                               std::uint64_t unit = 1) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ':') != key) continue;
    if (line.starts_with('\t')) line.remove_prefix(1);
    const std::uint64_t n = take_number(line);
    return n > kNotRead / unit ? kNotRead : n * unit;
  }
  return kNotRead;
}

// /proc/self/status and /proc/self/io.
inline void parse_status(std::string_view text, ProcessMetrics& to) {
  to.resident = number_of(text, "VmRSS", 1024);
  to.file = number_of(text, "RssFile", 1024);
  to.threads = number_of(text, "Threads");
}
inline void parse_io(std::string_view text, ProcessMetrics& to) {
  to.read_bytes = number_of(text, "read_bytes");
  to.written_bytes = number_of(text, "write_bytes");
}

}  // namespace tprof::metrics
