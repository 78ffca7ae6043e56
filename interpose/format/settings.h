// The settings (environment variables): the one table from which the library reads them, `tprof
// doctor` judges them and the README lists them. Usable inside the traced process.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/metrics.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// Parses "64MiB", "1G" or "4096": multiples are binary, and the unit's "iB" or "B" is optional.
inline bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc()) return false;
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  int shift = 0;
  if (!unit.empty()) {
    const std::size_t at = std::string_view("KMGT").find(unit[0]);
    if (at != std::string_view::npos) {
      shift = 10 * (static_cast<int>(at) + 1);
      unit.remove_prefix(1);
    }
  }
  if (!unit.empty() && unit != "B" && unit != "iB") return false;
  if (shift != 0 && bytes >> (64 - shift) != 0) return false;
  bytes <<= shift;
  return true;
}

// Calls f(first, last) for each range of "0-7,64"; false where the text is not such a list.
template <typename F>
bool each_range(std::string_view list, F&& f) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = prefix(list, comma);
    std::int64_t first = 0;
    const char* end = item.data() + item.size();
    auto [rest, error] = std::from_chars(item.data(), end, first);
    if (error != std::errc() || first < 0) return false;
    std::int64_t last = first;
    if (rest != end) {
      if (*rest != '-') return false;
      const auto second = std::from_chars(rest + 1, end, last);
      if (second.ec != std::errc() || second.ptr != end || last < first) return false;
    }
    f(first, last);
    list.remove_prefix(comma);
    if (list.empty()) return true;
    list.remove_prefix(1);
  }
  return false;
}

enum class Timer : std::uint8_t { host, events, cupti };
struct Timing {
  Timer by = Timer::host;
  std::uint32_t every = 0;  // events: one call of so many
};

// "host": no call is timed on the device; "events" and "cupti": every one; "events:16": one of 16.
inline bool parse_timing(std::string_view v, Timing& timing) {
  constexpr std::string_view kEvents = "events";
  timing = {};
  if (v == "host") return true;
  timing = {v == "cupti" ? Timer::cupti : Timer::events, 1};
  if (v == kEvents || v == "cupti") return true;
  if (!v.starts_with(kEvents) || v[kEvents.size()] != ':') return false;
  v.remove_prefix(kEvents.size() + 1);
  const auto [rest, error] = std::from_chars(v.data(), v.data() + v.size(), timing.every);
  return error == std::errc() && rest == v.data() + v.size() && timing.every != 0;
}

inline constexpr std::size_t kMaxRankList = 255;

namespace accept {
inline bool any(std::string_view) {
  return true;
}
inline bool on_off(std::string_view v) {
  return v == "on" || v == "off";
}
inline bool events(std::string_view v) {
  return v == "on" || v == "off" || v == "all";
}
inline bool timing(std::string_view v) {
  Timing timing;
  return parse_timing(v, timing);
}
inline bool call_site(std::string_view v) {
  CallSite what{};
  return parse_call_site(v, what);
}
inline bool bytes(std::string_view v) {
  std::uint64_t n = 0;
  return parse_bytes(v, n);
}
inline bool step(std::string_view v) {
  StepMark mark;
  return parse_step_mark(v, mark);
}
inline bool schedule(std::string_view v) {
  Schedule s;
  return parse_schedule(v, s);
}
inline bool metrics(std::string_view v) {
  MetricsWanted wanted;
  return parse_metrics(v, wanted);
}
inline bool nvtx(std::string_view v) {
  return on_off(v) || v == "nccl";
}
inline bool ranks(std::string_view v) {
  return v == "all" ||
         (v.size() <= kMaxRankList && each_range(v, [](std::int64_t, std::int64_t) {}));
}
inline bool element_size(std::string_view v) {
  return v == "1" || v == "2" || v == "4" || v == "8";
}
inline bool ring_dir(std::string_view v) {
  return v == "auto" || v.starts_with('/');
}
inline bool ring(std::string_view v) {
  std::uint64_t n = 0;
  return parse_bytes(v, n) && n >= kSmallestRing && n <= (1U << 22) && (n & (n - 1)) == 0;
}
}  // namespace accept

enum class Setting : std::uint8_t {
  output_dir,
  events,
  timing,
  call_site,
  quota,
  ranks,
  copy_element_size,
  step,
  schedule,
  window_files,
  cuda_profiler,
  metrics,
  memory,
  run_id,
  ring,
  ring_dir,
  redact,
  driver,
  dlsym,
  nvtx,
  disable,
};

struct SettingInfo {
  std::string_view name;
  std::string_view fallback;  // in force if it is not set, or if its value is not accepted
  std::string_view values;
  std::string_view meaning;
  bool (*accepts)(std::string_view value);
};

// The settings, in the order of Setting.
inline constexpr SettingInfo kSettings[] = {
    {"TPROF_OUTPUT_DIR", "tprof-traces",
     "a folder, made if missing; %j job id, %h host, %p pid, %r rank",
     "where the rank files are written", accept::any},
    {"TPROF_EVENTS", "on", "on, off or all",
     "one line per call; off: the exact counts only; all: also D2D, H2H and managed copies",
     accept::events},
    {"TPROF_TIMING", "host", "host, events, events:16 for one call of 16, or cupti",
     "time on the device; events: by a pair of CUDA events around each call on its stream; cupti: "
     "by CUPTI's records of kernels and copies, until the program wants CUPTI itself",
     accept::timing},
    {"TPROF_CALLSITE", "off", "off, native, python or both",
     "where in the program each call comes from: the calling library and function with the native "
     "stack, Python's stack, or both",
     accept::call_site},
    {"TPROF_QUOTA", "64MiB", "bytes such as 64MiB, or 0 for no limit",
     "event lines per process (with TPROF_WINDOW_FILES per file); after that the counts only",
     accept::bytes},
    {"TPROF_RANKS", "all", "ranks such as 0-7,64, or all",
     "ranks that write event lines; the others keep their counts", accept::ranks},
    {"TPROF_COPY_ELEMENT_SIZE", "1", "1, 2, 4 or 8", "bytes that count as one element of a copy",
     accept::element_size},
    {"TPROF_STEP", "auto", "auto, nvtx:NAME, call:FUNCTION, call:FUNCTION@COUNT, period, or off",
     "what marks a step, so that each gets a line with its exact counts; auto: numbered NVTX "
     "ranges of usual names, and with TPROF_SCHEDULE the period where there are none; period: "
     "found "
     "from the repeating order of the calls",
     accept::step},
    {"TPROF_SCHEDULE", "off",
     "off, profiler, ctl, or wait=5,warmup=1,active=3,repeat=2,skip_first=10,skip_first_wait=0",
     "steps with event lines and device times, as torch.profiler.schedule has them; profiler: "
     "between cudaProfilerStart and cudaProfilerStop; ctl: between tprof ctl's start and stop; the "
     "counts are those of the whole run",
     accept::schedule},
    {"TPROF_WINDOW_FILES", "0", "0 or 1",
     "1: the lines of each of TPROF_SCHEDULE's windows in a file of its own, complete when the "
     "window has ended; TPROF_QUOTA holds for each",
     accept::any},
    {"TPROF_CUDA_PROFILER", "0", "0 or 1",
     "1: cuProfilerStart and cuProfilerStop at the ends of TPROF_SCHEDULE's windows, for nsys "
     "--capture-range=cudaProfilerApi",
     accept::any},
    {"TPROF_METRICS", "off", "off, or a period from 100ms to 3600s; ,gpus behind it",
     "how often the lanes of the system are read: CPU, memory, threads, disk and page faults of "
     "the process; from local rank 0 also CPU, memory, disks, network and InfiniBand of the host; "
     "gpus: and, by NVML, what its GPUs do",
     accept::metrics},
    {"TPROF_MEMORY", "0", "0 or 1",
     "1: bytes that the program has allocated on each device, and pinned of the host's memory, now "
     "and at most; as they were asked for",
     accept::any},
    {"TPROF_RUN_ID", "the launcher's", "any text", "name of the run in every rank's header",
     accept::any},
    {"TPROF_RING", "16384", "a power of two from 64",
     "records that a thread's ring holds until the writer has them", accept::ring},
    {"TPROF_RING_DIR", "auto", "auto, or an absolute folder on tmpfs, ext2 to ext4 or XFS",
     "where the ring files are while the processes live", accept::ring_dir},
    {"TPROF_REDACT", "on", "on or off",
     "command and environment in the header without what looks like a secret", accept::on_off},
    {"TPROF_DRIVER", "0", "0 or 1",
     "1: the CUDA driver's copies count too; for programs with the CUDA runtime linked in",
     accept::any},
    {"TPROF_DLSYM", "0", "0 or 1",
     "1: NCCL and the CUDA runtime are seen through dlsym too: ctypes, cffi, CuPy, JAX",
     accept::any},
    {"TPROF_NVTX", "on", "on, nccl or off",
     "NVTX ranges as lines, and NCCL's own as a check; nccl: the check only; where "
     "NVTX_INJECTION64_PATH names the library",
     accept::nvtx},
    {"TPROF_DISABLE", "0", "0 or 1", "1: the library passes every call through, nothing else",
     accept::any},
};

// True if the value of a setting that is 0 or 1 means 0.
constexpr bool is_off(std::string_view v) {
  return v.empty() || v == "0" || v == "off" || v == "false" || v == "no";
}

// Variables of the scripts of this repository: neither settings nor misspelt ones.
inline constexpr std::string_view kScriptVariables[] = {"TPROF_BUILD"};

constexpr const SettingInfo& info(Setting s) {
  return kSettings[static_cast<std::size_t>(s)];
}

// True if `name` looks like a setting of ours but is none.
constexpr bool is_unknown_setting(std::string_view name) {
  if (!name.starts_with("TPROF_")) return false;
  for (const SettingInfo& s : kSettings) {
    if (name == s.name) return false;
  }
  for (const std::string_view script : kScriptVariables) {
    if (name == script) return false;
  }
  return true;
}

}  // namespace tprof
