// Metrics of the system (TPROF_METRICS): the values of a reading, and the lanes drawn from them.
// The library makes the lanes from this one table, the anonymizer recognises them by it, and the
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

inline constexpr std::uint64_t kMetricsQuotaDivisor = 4;  // their part of TPROF_QUOTA

// Rates over less than that would only show the kernel's clock ticks.
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

// One reading of a process: totals since it began; resident, file and threads are current values.
// A value that the system does not tell is kNotRead.
struct ProcessMetrics {
  std::uint64_t at_ns = kNotRead;  // CLOCK_MONOTONIC
  std::uint64_t user_ns = kNotRead, system_ns = kNotRead;
  std::uint64_t resident = kNotRead, file = kNotRead;
  std::uint64_t threads = kNotRead;
  std::uint64_t read_bytes = kNotRead, written_bytes = kNotRead;
  std::uint64_t major_faults = kNotRead;
};

// One reading of a host: totals since it booted; memory is current, in bytes.
struct HostMetrics {
  std::uint64_t at_ns = kNotRead;  // CLOCK_MONOTONIC
  std::uint64_t busy_ticks = kNotRead, all_ticks = kNotRead;
  std::uint64_t available = kNotRead, cached = kNotRead, dirty = kNotRead;
  std::uint64_t disks_read = kNotRead, disks_written = kNotRead;
  std::uint64_t network_received = kNotRead, network_sent = kNotRead;
  std::uint64_t infiniband_received = kNotRead, infiniband_sent = kNotRead;
};

// One reading of a GPU, from NVML.
struct GpuMetrics {
  std::uint64_t at_ns = kNotRead;                         // CLOCK_MONOTONIC
  std::uint64_t busy = kNotRead, memory_busy = kNotRead;  // hundredths of NVML's last period
  std::uint64_t memory_used = kNotRead;                   // bytes
  std::uint64_t milliwatts = kNotRead;
  std::uint64_t pcie_received = kNotRead, pcie_sent = kNotRead;  // bytes, since some time ago
  std::uint64_t nvlink_received = kNotRead, nvlink_sent = kNotRead;
};
inline constexpr std::uint32_t kMostGpus = 16;

// level: the number itself. thousandth: a thousandth of it. rate: its growth in a second. share:
// its growth in hundredths of the growth of `of`.
enum class MetricIs : std::uint8_t { level, thousandth, rate, share };

template <typename Reading>
struct MetricValue {
  std::string_view key;  // empty: there is none
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
inline constexpr MetricLane<HostMetrics> kHostLanes[] = {
    {"host CPU, %",
     {{"busy", MetricIs::share, &HostMetrics::busy_ticks, &HostMetrics::all_ticks}, {}, {}}},
    {"host memory, bytes",
     {{"available", MetricIs::level, &HostMetrics::available},
      {"cached", MetricIs::level, &HostMetrics::cached},
      {"dirty", MetricIs::level, &HostMetrics::dirty}}},
    {"host disks, bytes/s",
     {{"read", MetricIs::rate, &HostMetrics::disks_read},
      {"written", MetricIs::rate, &HostMetrics::disks_written},
      {}}},
    {"host network, bytes/s",
     {{"received", MetricIs::rate, &HostMetrics::network_received},
      {"sent", MetricIs::rate, &HostMetrics::network_sent},
      {}}},
    {"host InfiniBand, bytes/s",
     {{"received", MetricIs::rate, &HostMetrics::infiniband_received},
      {"sent", MetricIs::rate, &HostMetrics::infiniband_sent},
      {}}},
};

// The GPU's number, NVML's (and nvidia-smi's), stands before these names: "GPU 3 ".
inline constexpr std::string_view kGpuPrefix = "GPU ";
inline constexpr std::size_t kLongestGpuPrefix = std::string_view("GPU 15 ").size();
inline constexpr MetricLane<GpuMetrics> kGpuLanes[] = {
    {"utilization, %",
     {{"kernels", MetricIs::level, &GpuMetrics::busy},
      {"memory", MetricIs::level, &GpuMetrics::memory_busy},
      {}}},
    {"memory, bytes", {{"used", MetricIs::level, &GpuMetrics::memory_used}, {}, {}}},
    {"power, W", {{"power", MetricIs::thousandth, &GpuMetrics::milliwatts}, {}, {}}},
    {"PCIe, bytes/s",
     {{"received", MetricIs::rate, &GpuMetrics::pcie_received},
      {"sent", MetricIs::rate, &GpuMetrics::pcie_sent},
      {}}},
    {"NVLink, bytes/s",
     {{"received", MetricIs::rate, &GpuMetrics::nvlink_received},
      {"sent", MetricIs::rate, &GpuMetrics::nvlink_sent},
      {}}},
};

template <typename Reading>
constexpr std::span<const MetricLane<Reading>> metric_lanes() {
  if constexpr (std::is_same_v<Reading, GpuMetrics>) {
    return kGpuLanes;
  } else if constexpr (std::is_same_v<Reading, HostMetrics>) {
    return kHostLanes;
  } else {
    return kProcessLanes;
  }
}

template <typename Reading>
constexpr bool is_word_of_lanes(std::string_view word) {
  for (const MetricLane<Reading>& lane : metric_lanes<Reading>()) {
    if (word == lane.name) return true;
    for (const MetricValue<Reading>& v : lane.value) {
      if (!word.empty() && word == v.key) return true;
    }
  }
  return false;
}

// True if a counter's name, or the key of a value, is one of these: then it is nobody's secret.
constexpr bool is_metric_word(std::string_view word) {
  std::string_view of_gpu = word;
  if (word.starts_with(kGpuPrefix)) {
    of_gpu.remove_prefix(
        std::min(of_gpu.find_first_not_of("0123456789", kGpuPrefix.size()), word.size()));
    if (of_gpu.starts_with(' ')) of_gpu.remove_prefix(1);
  }
  return is_word_of_lanes<ProcessMetrics>(word) || is_word_of_lanes<HostMetrics>(word) ||
         is_word_of_lanes<GpuMetrics>(of_gpu);
}

}  // namespace tprof
