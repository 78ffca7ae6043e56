// Counters, as stored in a thread's ring: several values of one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "interpose/format/ranges.h"

namespace tprof {

inline constexpr char kCounterCategory[] = "COUNTER";
inline constexpr std::uint32_t kMaxCounterValues = 8;
inline constexpr std::uint32_t kMaxCounterNames = 128;  // bytes, with a NUL after each

// A counter's records (RangeRecord: kMetaCounter, then kMetaRangeMore) hold its values, which are
// the last of `value`, then its own name and a key for each value. `length` is the length of the
// names, and `kind` is the number of values.
struct Counter {
  double value[kMaxCounterValues];
  char names[kMaxCounterNames];
  char unused[RangeRecord::kBytes];  // records are copied whole
  std::uint32_t values;
  std::uint32_t length;
};
static_assert(std::is_trivially_copyable_v<Counter> &&
              offsetof(Counter, names) == sizeof(Counter::value));

constexpr std::size_t counter_bytes_at(std::uint32_t values) {
  return offsetof(Counter, names) - values * sizeof(double);
}
constexpr std::uint32_t counter_bytes(const Counter& c) {
  return c.values * static_cast<std::uint32_t>(sizeof(double)) + c.length;
}
constexpr std::uint32_t counter_records(const Counter& c) {
  return (counter_bytes(c) + RangeRecord::kBytes - 1) / RangeRecord::kBytes;
}

// Calls f(key, value) for each value, and returns the counter's name.
template <typename F>
constexpr std::string_view each_value(const Counter& c, F&& f) {
  std::string_view rest(c.names, c.length < kMaxCounterNames ? c.length : kMaxCounterNames);
  const auto next = [&] {
    const std::size_t end = rest.find('\0');
    const std::string_view text(rest.data(), end == std::string_view::npos ? rest.size() : end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return text;
  };
  const std::string_view name = next();
  for (std::uint32_t i = kMaxCounterValues - c.values; i < kMaxCounterValues; ++i) {
    const std::string_view key = next();
    f(key, c.value[i]);
  }
  return name;
}

}  // namespace tprof
