// What became known of calls: into the ledger and, where the ring has room, a line each.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/timing/exposure.h"
#include "interpose/timing/timing.h"

namespace tprof::timing::results {

// On the thread that begins, before the one that writes them: own_thread.
bool begin();

// `start_ns`: on the host's clock, 0 where that is not known.
void add(const Calls& of, CUstream stream, std::uint64_t start_ns, std::uint64_t ns);
void add(const Exposed& found);  // known
void lose(ExposureLost why, std::uint64_t calls);
// Where a device's clock is on the host's, and how wrong that may be.
void add_clock(int device, std::uint64_t at_ns, std::uint64_t error_ns, std::int64_t drift_ppb);

}  // namespace tprof::timing::results
