// The settings (environment variables). The library reads them by this table, `tprof doctor` checks
// them by it, and the README lists it (scripts/settings-table). Usable inside the traced process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/format/metrics.h"
#include "interpose/format/setting_values.h"
#include "interpose/format/sites.h"

namespace tprof {

// A row is one setting: X(field, "VARIABLE", type, parser, "default", "values", "meaning"). The
// default is in force if the variable is not set, or if the parser does not accept its value.
// clang-format off
#define TPROF_SETTINGS(X)                                                                        \
  X(output_dir, "TPROF_OUTPUT_DIR", FolderText, parse_text,                                      \
    "tprof-traces", "a folder, made if missing; %j job id, %h host, %p pid, %r rank",            \
    "where the rank files are written")                                                          \
  X(events, "TPROF_EVENTS", EventLines, parse_events,                                            \
    "on", "on, off or all",                                                                      \
    "one line per call; off: the exact counts only; all: also D2D, H2H and managed copies")      \
  X(timing, "TPROF_TIMING", Timing, parse_timing,                                                \
    "host", "host, events, events:16 for one call of 16, or cupti",                              \
    "time on the device; events: by a pair of CUDA events around each call on its stream; "      \
    "cupti: by CUPTI's records of kernels and copies, until the program wants CUPTI itself")     \
  X(call_site, "TPROF_CALLSITE", CallSite, parse_call_site,                                      \
    "off", "off, native, python or both",                                                        \
    "where in the program each call is made: the calling library and function with the "         \
    "native stack, Python's stack, or both")                                                     \
  X(quota, "TPROF_QUOTA", std::uint64_t, parse_bytes,                                            \
    "64MiB", "bytes such as 64MiB, or 0 for no limit",                                           \
    "event lines per process (with TPROF_WINDOW_FILES per file); after that the counts only")    \
  X(ranks, "TPROF_RANKS", RankList, parse_ranks,                                                 \
    "all", "ranks such as 0-7,64, or all",                                                       \
    "ranks that write event lines; the others keep their counts")                                \
  X(ops, "TPROF_OPS", ChoiceText, parse_ops,                                                     \
    "all", "buckets or functions such as ALLGATHER,nccl*Reduce*, or all",                        \
    "calls that get event lines; the counts include all calls")                                  \
  X(sizes, "TPROF_SIZES", ChoiceText, parse_sizes,                                               \
    "all", "bytes of a call such as 1M-64M, 64K- or -4K,1G-, or all",                            \
    "sizes of calls that get event lines; lines of device times are not affected, and the "      \
    "counts include all calls")                                                                  \
  X(copy_element_size, "TPROF_COPY_ELEMENT_SIZE", std::uint32_t, parse_element_size,             \
    "1", "1, 2, 4 or 8",                                                                         \
    "bytes that count as one element of a copy")                                                 \
  X(step, "TPROF_STEP", StepText, parse_step_text,                                               \
    "auto", "auto, nvtx:NAME, call:FUNCTION, call:FUNCTION@COUNT, period, or off",               \
    "what marks a step, which gets a line with its exact counts; auto: numbered NVTX "           \
    "ranges of usual names, and with TPROF_SCHEDULE the period if there are none; period: "      \
    "found from the repeating order of the calls")                                               \
  X(schedule, "TPROF_SCHEDULE", ScheduleText, parse_schedule_text,                               \
    "off",                                                                                       \
    "off, profiler, ctl, or wait=5,warmup=1,active=3,repeat=2,skip_first=10,skip_first_wait=0",  \
    "steps with event lines and device times, as torch.profiler.schedule has them; profiler: "   \
    "between cudaProfilerStart and cudaProfilerStop; ctl: between tprof ctl's start and stop; "  \
    "the counts always cover the whole run")                                                     \
  X(window_files, "TPROF_WINDOW_FILES", bool, parse_switch,                                      \
    "0", "0 or 1",                                                                               \
    "1: a separate file for each of TPROF_SCHEDULE's windows, complete when the window has "     \
    "ended; TPROF_QUOTA is per file")                                                            \
  X(cuda_profiler, "TPROF_CUDA_PROFILER", bool, parse_switch,                                    \
    "0", "0 or 1",                                                                               \
    "1: cuProfilerStart and cuProfilerStop around TPROF_SCHEDULE's windows, for nsys "           \
    "--capture-range=cudaProfilerApi")                                                           \
  X(metrics, "TPROF_METRICS", MetricsWanted, parse_metrics,                                      \
    "off", "off, or a period from 100ms to 3600s, with ,gpus or without",                        \
    "how often metrics are read: CPU, memory, threads, disk and page faults of the process; "    \
    "under tprof run also CPU, memory, disks, network and InfiniBand of each node; gpus: also "  \
    "what its GPUs do, by NVML")                                                                 \
  X(memory, "TPROF_MEMORY", bool, parse_switch,                                                  \
    "0", "0 or 1",                                                                               \
    "1: bytes that the program has allocated on each device, and pinned in host memory, now "    \
    "and at the peak, as requested")                                                             \
  X(run_id, "TPROF_RUN_ID", NameText, parse_run_id,                                              \
    "the launcher's", "any text",                                                                \
    "name of the run in every rank's header")                                                    \
  X(ring, "TPROF_RING", std::uint32_t, parse_ring,                                               \
    "16384", "a power of two from 64",                                                           \
    "capacity of a thread's ring, in records that wait for the writer")                          \
  X(ring_dir, "TPROF_RING_DIR", FolderText, parse_ring_dir,                                      \
    "auto", "auto, or an absolute folder on tmpfs, ext4 or XFS",                                 \
    "where the ring files are while the processes live")                                         \
  X(redact, "TPROF_REDACT", bool, parse_switch,                                                  \
    "on", "on or off",                                                                           \
    "leaves what looks like a secret out of the command and environment in the header")          \
  X(driver, "TPROF_DRIVER", bool, parse_switch,                                                  \
    "0", "0 or 1",                                                                               \
    "1: the CUDA driver's copies count too; for programs with the CUDA runtime linked in")       \
  X(dlsym, "TPROF_DLSYM", bool, parse_switch,                                                    \
    "0", "0 or 1",                                                                               \
    "1: NCCL and the CUDA runtime are also seen through dlsym: ctypes, cffi, CuPy, JAX")         \
  X(nvtx, "TPROF_NVTX", NvtxRanges, parse_nvtx,                                                  \
    "on", "on, nccl or off",                                                                     \
    "NVTX ranges as lines, and NCCL's own as a check; nccl: the check only; where "              \
    "NVTX_INJECTION64_PATH names the library")                                                   \
  X(disable, "TPROF_DISABLE", bool, parse_switch,                                                \
    "0", "0 or 1",                                                                               \
    "1: the library only passes calls through")
// clang-format on

enum class Setting : std::uint8_t {
#define TPROF_FIELD(field, ...) field,
  TPROF_SETTINGS(TPROF_FIELD)
#undef TPROF_FIELD
};

struct SettingInfo {
  std::string_view name;
  std::string_view fallback;
  std::string_view values;
  std::string_view meaning;
  bool (*accepts)(std::string_view value);
};

// The settings, in the order of Setting.
inline constexpr SettingInfo kSettings[] = {
#define TPROF_ROW(field, variable, type, parse, fallback, values, meaning) \
  {variable, fallback, values, meaning, [](std::string_view text) {        \
     type value{};                                                         \
     return parse(text, value);                                            \
   }},
    TPROF_SETTINGS(TPROF_ROW)
#undef TPROF_ROW
};

// Variables of the tool under MPI and of the scripts of this repository: neither settings nor
// misspelt ones.
inline constexpr std::string_view kOtherVariables[] = {"TPROF_MPI", "TPROF_BUILD"};

constexpr const SettingInfo& info(Setting s) {
  return kSettings[static_cast<std::size_t>(s)];
}

// True if `name` looks like a setting of ours but is not one.
constexpr bool is_unknown_setting(std::string_view name) {
  if (!name.starts_with("TPROF_")) return false;
  for (const SettingInfo& s : kSettings) {
    if (name == s.name) return false;
  }
  for (const std::string_view other : kOtherVariables) {
    if (name == other) return false;
  }
  return true;
}

}  // namespace tprof
