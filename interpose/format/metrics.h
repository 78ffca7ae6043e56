// Metrics of the process (TPROF_METRICS): the values of a reading, and the lanes drawn from them.
// The library makes the lanes from this table, the anonymizer recognizes them by it, and the
// contract lists them.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "interpose/base/text.h"

namespace tprof {

inline constexpr std::uint64_t kMetricsQuotaDivisor = 4;  // they may use this part of TPROF_QUOTA

// Rates over a shorter time would only show the kernel's clock ticks.
inline constexpr std::uint64_t kShortestMetricsNs = 100'000'000;
inline constexpr std::uint64_t kLongestMetricsNs = 3'600'000'000'000;

struct MetricsWanted {
  std::uint64_t every_ns = 0;  // 0: none
  bool gpus = false;
};
inline constexpr std::string_view kAndGpus = ",gpus";

// Parses "1s", "500ms", "1s,gpus" or "off".
inline bool parse_metrics(std::string_view text, MetricsWanted& to) {
  to = {};
  if (text == "off") return true;
  to.gpus = text.ends_with(kAndGpus);
  if (to.gpus) text.remove_suffix(kAndGpus.size());
  std::uint64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count > kLongestMetricsNs) return false;
  const std::string_view unit = without_prefix(text, static_cast<std::size_t>(rest - text.data()));
  const std::uint64_t unit_ns = unit == "s" ? 1'000'000'000 : unit == "ms" ? 1'000'000 : 0;
  if (unit_ns == 0 || count > kLongestMetricsNs / unit_ns) return false;
  to.every_ns = count * unit_ns;
  return to.every_ns >= kShortestMetricsNs;
}

inline constexpr std::uint64_t kNotRead = UINT64_MAX;

// One reading of a process: totals since it began; resident, file and threads are current values. A
// value that the system does not provide is kNotRead.
struct ProcessMetrics {
  std::uint64_t at_ns = kNotRead;  // CLOCK_MONOTONIC
  std::uint64_t user_ns = kNotRead, system_ns = kNotRead;
  std::uint64_t resident = kNotRead, file = kNotRead;
  std::uint64_t threads = kNotRead;
  std::uint64_t read_bytes = kNotRead, written_bytes = kNotRead;
  std::uint64_t major_faults = kNotRead;
};

// level: the value itself. thousandth: a thousandth of it. rate: its growth per second. share: its
// growth as a percentage of the growth of `of`.
enum class MetricIs : std::uint8_t { level, thousandth, rate, share };

template <typename Reading>
struct MetricValue {
  std::string_view key;  // empty: no second value
  MetricIs is = MetricIs::level;
  std::uint64_t Reading::*number = nullptr;
  std::uint64_t Reading::*of = nullptr;
};

inline constexpr std::size_t kMostMetricValues = 3;
template <typename Reading>
struct MetricLane {
  std::string_view name;
  MetricValue<Reading> value[kMostMetricValues];
};

inline constexpr MetricLane<ProcessMetrics> kProcessLanes[] = {
    {"process CPU, % of a core",
     {{"user", MetricIs::share, &ProcessMetrics::user_ns, &ProcessMetrics::at_ns},
      {"system", MetricIs::share, &ProcessMetrics::system_ns, &ProcessMetrics::at_ns},
      {}}},
    {"process memory, bytes",
     {{"resident", MetricIs::level, &ProcessMetrics::resident},
      {"file", MetricIs::level, &ProcessMetrics::file},
      {}}},
    {"process threads", {{"threads", MetricIs::level, &ProcessMetrics::threads}, {}, {}}},
    {"process disk, bytes/s",
     {{"read", MetricIs::rate, &ProcessMetrics::read_bytes},
      {"written", MetricIs::rate, &ProcessMetrics::written_bytes},
      {}}},
    {"process major page faults, 1/s",
     {{"faults", MetricIs::rate, &ProcessMetrics::major_faults}, {}, {}}},
};
// The lanes of a reading; those of nodes are in analysis/read/node_metrics.h.
template <typename Reading>
inline constexpr std::span<const MetricLane<Reading>> kLanes;
template <>
inline constexpr std::span<const MetricLane<ProcessMetrics>> kLanes<ProcessMetrics>{kProcessLanes};

}  // namespace tprof
