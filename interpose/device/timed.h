// The device's time around a recorded call (device/), if it can have one.
#pragma once

#include "interpose/device/timing.h"
#include "interpose/record/thread.h"

namespace tprof {

// Called if device::on(), before the real call, of which `r` has all but the outcome.
[[gnu::cold, gnu::noinline]] void start_timing(Thread& t, const Record& r, std::uint8_t function);
// Called after it, whether or not it is being timed. `parts`: a batch's, each a row of the ledger.
[[gnu::cold, gnu::noinline]] void stop_timing(Thread& t, const Record& r, LedgerKey::Words key,
                                              bool ok, std::uint64_t parts = 1);

}  // namespace tprof
