// The settings, read from the environment. Those that are needed before tracing starts are read at
// the first question, the others once, when it starts.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>

#include "interpose/format/settings.h"

namespace tprof {

// The settings in force: a field for each row of the table.
struct Config {
#define TPROF_FIELD(field, variable, type, ...) type field;
  TPROF_SETTINGS(TPROF_FIELD)
#undef TPROF_FIELD
};

// A bad value costs one line on standard error, and the default is used. A variable that is not a
// setting but is named like one costs such a line too.
Config read_config();

// True if TPROF_DISABLE is set to something true. Cheap enough for any process.
bool disabled_by_environment();

// TPROF_NVTX. A bad value is reported when tracing starts.
NvtxRanges nvtx_by_environment();

// The hooks that are off unless asked for. A program may take its pointers before it makes calls.
namespace opt_in {

// Each setting that is 0 or 1 has its bit, and TPROF_TIMING has two.
constexpr std::uint32_t bit_of(Setting s) {
  return std::uint32_t{1} << static_cast<unsigned>(s);
}
inline constexpr std::uint32_t kRead = 1U << 31;
inline constexpr std::uint32_t kCupti = 1U << 30;
inline constexpr std::uint32_t kEvents = 1U << 29;
static_assert(std::size(kSettings) <= 29);
inline std::atomic<std::uint32_t> g_hooks{0};

[[gnu::cold, gnu::noinline]] std::uint32_t read();
inline std::uint32_t hooks() {
  const std::uint32_t known = g_hooks.load(std::memory_order_relaxed);
  return known != 0 ? known : read();
}
inline bool on(Setting s) {
  return (hooks() & bit_of(s)) != 0;
}

// TPROF_DRIVER: the driver's copies are counted. Budget: 1 ns.
inline bool driver() {
  return on(Setting::driver);
}
// TPROF_DLSYM: functions of NCCL and of the CUDA runtime that dlsym gives are wrapped.
inline bool dlsym() {
  return on(Setting::dlsym);
}

// TPROF_MEMORY: the program's allocations are counted, those by the driver's functions too.
inline bool memory() {
  return on(Setting::memory);
}

// TPROF_TIMING=events: launches and waits by the driver's functions are followed too.
inline bool events() {
  return (hooks() & kEvents) != 0;
}

// TPROF_TIMING=cupti: we see the program reach for CUPTI, whatever way it takes.
inline bool cupti() {
  return (hooks() & kCupti) != 0;
}

}  // namespace opt_in
}  // namespace tprof
