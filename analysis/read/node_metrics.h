// Metrics of a node (TPROF_METRICS under `tprof run`): the values of a reading and their lanes.
// tprof-node writes them, and readers recognise them by this table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpose/write/metric_lanes.h"

namespace tprof {

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
  std::uint64_t pcie_received = kNotRead, pcie_sent = kNotRead;  // bytes, from an arbitrary start
  std::uint64_t nvlink_received = kNotRead, nvlink_sent = kNotRead;
};
inline constexpr std::uint32_t kMostGpus = 16;

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

// These names follow the GPU's number in NVML and nvidia-smi: "GPU 3 ".
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
template <>
inline constexpr std::span<const MetricLane<HostMetrics>> kLanes<HostMetrics>{kHostLanes};
template <>
inline constexpr std::span<const MetricLane<GpuMetrics>> kLanes<GpuMetrics>{kGpuLanes};
static_assert(metrics::names_fit<HostMetrics>(0) &&
              metrics::names_fit<GpuMetrics>(kLongestGpuPrefix));

template <typename Reading>
constexpr bool is_word_of_lanes(std::string_view word) {
  for (const MetricLane<Reading>& lane : kLanes<Reading>) {
    if (word == lane.name) return true;
    for (const MetricValue<Reading>& v : lane.value) {
      if (!word.empty() && word == v.key) return true;
    }
  }
  return false;
}

// True if a counter's name, or a value's key, is one of these: then it need not be anonymized.
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
