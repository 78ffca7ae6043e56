// Reads CUPTI's records: times of calls, and how long the device was busy with kernels.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/device/intervals.h"
#include "interpose/record/timed_call.h"

namespace tprof::device::cupti_reader {

// Receives what was read.
struct Results {
  void (*add)(const Calls& of, CUstream stream, std::uint64_t start_ns, std::uint64_t ns);
  void (*lose)(TimingLost why, const Calls& of);
  void (*add_clock)(int device, std::uint64_t at_ns, std::uint64_t error_ns,
                    std::int64_t drift_ppb);
  bool (*add_busy)(int device, const Interval& interval, std::uint64_t idle_from_ns);
};

// Makes us CUPTI's client. Returns what keeps us from it, or null.
const char* enter(const Results& to, bool window_open);
// Reads what there is. Call it on one thread only, which flushes. False: we are no client.
bool read(bool ending, bool window_open);
void after_fork();

}  // namespace tprof::device::cupti_reader
