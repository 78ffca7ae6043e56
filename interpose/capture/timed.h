// The device's time around a recorded call (timing/), if it can have one.
#pragma once

#include "interpose/thread/thread.h"
#include "interpose/timing/timing.h"

namespace tprof {

// Where timing::on(). Before the real call, of which `r` knows all but the outcome.
[[gnu::cold, gnu::noinline]] void start_timing(Thread& t, const Record& r, std::uint8_t function);
// Behind it, whether or not it is being timed. `parts`: of a batch, each a row of the ledger.
[[gnu::cold, gnu::noinline]] void stop_timing(Thread& t, const Record& r, LedgerKey::Words key,
                                              bool ok, std::uint64_t parts = 1);

}  // namespace tprof
