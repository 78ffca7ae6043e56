// Adds the times of calls to the ledger and, if the ring has room, as lines.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/device/exposure.h"
#include "interpose/device/timing.h"

namespace tprof::device::results {

// Call this on the thread that starts timing, before own_thread starts.
bool begin();

// `start_ns` is on the host's clock, or 0 if it is not known.
void add(const Calls& of, CUstream stream, std::uint64_t start_ns, std::uint64_t ns);
void add(const Exposed& found);  // only if found.known
void lose(ExposureLost why, std::uint64_t calls);
// Writes an anchor of a device's clock on the host's, and its error.
void add_clock(int device, std::uint64_t at_ns, std::uint64_t error_ns, std::int64_t drift_ppb);

// Writes when a device computed, and since when it had been idle before. Returns false if there is
// no room.
bool add_busy(int device, const Interval& interval, std::uint64_t idle_from_ns);

}  // namespace tprof::device::results
