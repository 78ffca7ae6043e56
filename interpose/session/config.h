// The settings, read from the environment. Settings needed before tracing starts are read on first
// use, the others when it starts.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/settings.h"

namespace tprof {

// The settings in force: a field for each row of the table.
struct Config {
#define TPROF_FIELD(field, variable, type, ...) type field;
  TPROF_SETTINGS(TPROF_FIELD)
#undef TPROF_FIELD
};

// Reports each bad value, and uses the default. Also reports variables that are named like settings
// but are none.
Config read_config();

// True if TPROF_DISABLE is on. Cheap enough for any process.
bool disabled_by_environment();

// TPROF_NVTX. A bad value is reported when tracing starts.
NvtxRanges nvtx_by_environment();

// Hooks that are off by default. A program may look up functions before it makes calls.
namespace opt_in {

inline constexpr std::uint32_t kRead = 1;
inline constexpr std::uint32_t kDriver = 2;
inline constexpr std::uint32_t kDlsym = 4;
inline constexpr std::uint32_t kMemory = 8;
inline constexpr std::uint32_t kEvents = 16;
inline constexpr std::uint32_t kCupti = 32;

inline std::atomic<std::uint32_t> g_hooks{0};

[[gnu::cold, gnu::noinline]] std::uint32_t read();
inline std::uint32_t hooks() {
  const std::uint32_t known = g_hooks.load(std::memory_order_relaxed);
  return known != 0 ? known : read();
}
// TPROF_DRIVER: the driver's copies are counted. Budget: 1 ns.
inline bool driver() {
  return (hooks() & kDriver) != 0;
}
// TPROF_DLSYM: NCCL's and the CUDA runtime's functions are wrapped when dlsym returns them.
inline bool dlsym() {
  return (hooks() & kDlsym) != 0;
}

// TPROF_MEMORY: the program's allocations are counted, also through the driver's functions.
inline bool memory() {
  return (hooks() & kMemory) != 0;
}

// TPROF_TIMING=events: launches and waits are followed, also through the driver's functions.
inline bool events() {
  return (hooks() & kEvents) != 0;
}

// TPROF_TIMING=cupti: the program's use of CUPTI is noticed, however it gets the functions.
inline bool cupti() {
  return (hooks() & kCupti) != 0;
}

}  // namespace opt_in
}  // namespace tprof
