// The settings, read from the environment. Those that are needed before tracing starts are read at
// the first question, the others once, when it starts.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/format/ring_file.h"
#include "interpose/format/settings.h"

namespace tprof {

struct Config {
  char output_dir[1024];  // with %j %h %p %r still in it
  char run_id[128];       // "" if none
  char ring_dir[1024];    // "": auto
  EventLines events;
  Timing timing;
  CallSite call_site;
  std::uint64_t quota;              // bytes of event lines, 0: no limit
  std::uint32_t copy_element_size;  // bytes: 1, 2, 4 or 8
  std::uint32_t ring_records;       // per thread, a power of two
  bool all_ranks;                   // TPROF_RANKS is unset, or "all"
  char ranks[kMaxRankList + 1];     // its text
  char step_mark[kMaxStepMark + 1];
  WindowsBy windows_by;
  char schedule[kMaxSchedule + 1];  // "": off
  bool window_files;                // lines of windows go to files of their own
  bool cuda_profiler;               // at the ends of windows
  MetricsWanted metrics;
  bool redact;  // leave out of the header what looks like a secret
};

// A bad value costs one line on standard error, and the default is used. A variable that is not a
// setting but is named like one costs such a line too.
Config read_config();

// True if `rank` is in a list such as "0-7,64".
bool rank_in_list(const char* list, std::int64_t rank);

// True if TPROF_DISABLE is set to something true. Cheap enough for any process.
bool disabled_by_environment();

// TPROF_NVTX says whose ranges are wanted. A bad value is reported when tracing starts.
enum class NvtxRanges : std::uint8_t { off, nccl, all };
NvtxRanges nvtx_by_environment();

// The hooks that are off unless asked for. A program may take its pointers before it makes calls.
namespace opt_in {

inline constexpr std::uint8_t kRead = 1;
inline constexpr std::uint8_t kDriver = 2;
inline constexpr std::uint8_t kDlsym = 4;
inline constexpr std::uint8_t kCupti = 8;
inline constexpr std::uint8_t kMemory = 16;
inline constexpr std::uint8_t kEvents = 32;
inline std::atomic<std::uint8_t> g_hooks{0};

[[gnu::cold, gnu::noinline]] std::uint8_t read();
inline std::uint8_t hooks() {
  const std::uint8_t known = g_hooks.load(std::memory_order_relaxed);
  return known != 0 ? known : read();
}

// TPROF_DRIVER: the driver's copies are counted. Budget: 1 ns.
inline bool driver() {
  return (hooks() & kDriver) != 0;
}
// TPROF_DLSYM: functions of NCCL and of the CUDA runtime that dlsym gives are wrapped.
inline bool dlsym() {
  return (hooks() & kDlsym) != 0;
}

// TPROF_MEMORY: the program's allocations are booked, those by the driver's functions too.
inline bool memory() {
  return (hooks() & kMemory) != 0;
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
