// Puts what became known of calls into the ledger and, where the ring has room, into a line each.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/device/exposure.h"
#include "interpose/device/timing.h"

namespace tprof::device::results {

// Call this on the thread that starts timing, before own_thread, which writes the results, starts.
bool begin();

// `start_ns` is on the host's clock, or 0 if it is not known.
void add(const Calls& of, CUstream stream, std::uint64_t start_ns, std::uint64_t ns);
void add(const Exposed& found);  // only if found.known
void lose(ExposureLost why, std::uint64_t calls);
// Writes where a device's clock is on the host's, and how wrong that may be.
void add_clock(int device, std::uint64_t at_ns, std::uint64_t error_ns, std::int64_t drift_ppb);

// Writes when a device computed, and since when it had been idle before. False: no room for it.
bool add_busy(int device, const Interval& interval, std::uint64_t idle_from_ns);

}  // namespace tprof::device::results
