// The types of settings, and their parsers. Each parse_…(text, value) returns false if the text is
// not accepted, and writes the whole value if it is. Usable inside the traced process.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/format/ring_file.h"
#include "interpose/format/schedule.h"
#include "interpose/format/step_mark.h"

namespace tprof {

// The syntax of TPROF_OPS and TPROF_SIZES, and of the tool's --ops and --sizes: they select calls
// by operation and by size. Usable inside the traced process.

constexpr char lower_case(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// `*` matches any text. Case does not matter.
inline bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  const std::string_view rest = without_prefix(pattern, 1);
  if (pattern[0] == '*') {
    return matches(rest, name) || (!name.empty() && matches(pattern, without_prefix(name, 1)));
  }
  return !name.empty() && lower_case(pattern[0]) == lower_case(name[0]) &&
         matches(rest, without_prefix(name, 1));
}

// Reads "a-b", "a-", "-b" or "a" with parse(text, number). Returns false for anything else.
template <typename Number, typename Parse>
bool parse_borders(std::string_view item, Number& least, Number& most, const Parse& parse) {
  const std::size_t dash = std::min(item.find('-'), item.size());
  const std::string_view from = prefix(item, dash);
  const std::string_view to = dash == item.size() ? from : without_prefix(item, dash + 1);
  return !(from.empty() && to.empty()) && (from.empty() || parse(from, least)) &&
         (to.empty() || parse(to, most)) && least <= most;
}

// Bytes of one call, both included.
struct Sizes {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  bool holds(std::uint64_t bytes) const { return least <= bytes && bytes <= most; }
};

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

// Calls f(first, last) for each range of "0-7,64"; false if the text is not such a list.
template <typename F>
bool each_range(std::string_view list, F&& f) {
  return each_item(list, [&](std::string_view item) {
    const std::size_t dash = std::min(item.find('-'), item.size());
    std::int64_t first = 0;
    if (!parse_number(prefix(item, dash), first)) return false;
    std::int64_t last = first;
    const bool one = dash == item.size();
    if (!one && (!parse_number(without_prefix(item, dash + 1), last) || last < first)) return false;
    f(first, last);
    return true;
  });
}

// The ways of timing calls on the device (TPROF_TIMING). A new one is a row here, and a file
// device/by_NAME.cpp that does it (device/mode.h).

// The calls that a timer needs from the process's first one on.
enum class Watched : std::uint8_t { nothing, launches, cupti };

// X(name, whether "name:N" times one call of N, what is watched)
#define TPROF_TIMERS(X)              \
  X(host, false, Watched::nothing)   \
  X(events, true, Watched::launches) \
  X(cupti, false, Watched::cupti)

enum class Timer : std::uint8_t {
#define X(name, ...) name,
  TPROF_TIMERS(X)
#undef X
};
struct TimerInfo {
  std::string_view name;
  bool shared;
  Watched watched;
};
inline constexpr TimerInfo kTimers[] = {
#define X(name, ...) {#name, __VA_ARGS__},
    TPROF_TIMERS(X)
#undef X
};

struct Timing {
  Timer by = Timer::host;
  std::uint32_t every = 1;  // one of every so many calls
};

inline bool parse_timing(std::string_view v, Timing& timing) {
  timing = {};
  const std::size_t colon = v.find(':');
  const std::string_view name(v.data(), colon == v.npos ? v.size() : colon);
  for (const TimerInfo& timer : kTimers) {
    if (name != timer.name) continue;
    timing.by = static_cast<Timer>(&timer - kTimers);
    if (name.size() == v.size()) return true;
    return timer.shared && parse_number(without_prefix(v, colon + 1), timing.every) &&
           timing.every != 0;
  }
  return false;
}

using FolderText = char[1024];
using NameText = char[128];
using StepText = char[kMaxStepMark + 1];

template <std::size_t N>
bool parse_text(std::string_view v, char (&to)[N]) {
  copy_text(to, v);
  return true;
}

// "" stands for the launcher's name of the run.
inline constexpr std::string_view kLaunchersRunId = "the launcher's";
inline bool parse_run_id(std::string_view v, NameText& to) {
  return parse_text(v == kLaunchersRunId ? "" : v, to);
}

// "" stands for the best available folder.
inline constexpr std::string_view kAutoFolder = "auto";
inline bool parse_ring_dir(std::string_view v, FolderText& to) {
  return parse_text(v == kAutoFolder ? "" : v, to) && (v == kAutoFolder || v.starts_with('/'));
}

// True if the value of a setting of 0 or 1 means 1.
constexpr bool is_on(std::string_view v) {
  return v == "1" || v == "on" || v == "true" || v == "yes";
}
inline bool parse_switch(std::string_view v, bool& on) {
  on = is_on(v);
  return on || v == "0" || v == "off" || v == "false" || v == "no";
}

inline bool parse_events(std::string_view v, EventLines& events) {
  events = v == "on" ? EventLines::on : v == "all" ? EventLines::all : EventLines::off;
  return events != EventLines::off || v == "off";
}

// The NVTX ranges to record.
enum class NvtxRanges : std::uint8_t { off, nccl, all };
inline bool parse_nvtx(std::string_view v, NvtxRanges& ranges) {
  ranges = v == "on" ? NvtxRanges::all : v == "nccl" ? NvtxRanges::nccl : NvtxRanges::off;
  return ranges != NvtxRanges::off || v == "off";
}

struct RankList {
  static constexpr std::size_t kMax = 255;

  bool all = false;
  char list[kMax + 1] = {};  // "0-7,64", unless all

  bool has(std::int64_t rank) const {
    bool found = all;
    each_range(list, [&](std::int64_t first, std::int64_t last) {
      found = found || (first <= rank && rank <= last);
    });
    return found;
  }
};
inline bool parse_ranks(std::string_view v, RankList& ranks) {
  ranks.all = v == "all";
  copy_text(ranks.list, ranks.all ? "" : v);
  return ranks.all ||
         (v.size() <= RankList::kMax && each_range(v, [](std::int64_t, std::int64_t) {}));
}

// Empty: all.
inline bool parse_ops(std::string_view v, ChoiceText& ops) {
  copy_text(ops, v == "all" ? "" : v);
  return v == "all" ||
         (v.size() < sizeof ops && each_item(v, [](std::string_view) { return true; }));
}
// Calls f(sizes) for each of "-4K,1M-64M"; false if the text is not such a list.
template <typename F>
bool each_sizes(std::string_view list, F&& f) {
  return each_item(list, [&](std::string_view item) {
    Sizes sizes;
    const bool are_sizes = parse_borders(item, sizes.least, sizes.most, parse_bytes);
    if (are_sizes) f(sizes);
    return are_sizes;
  });
}
inline bool parse_sizes(std::string_view v, ChoiceText& sizes) {
  copy_text(sizes, v == "all" ? "" : v);
  return v == "all" || (v.size() < sizeof sizes && each_sizes(v, [](const Sizes&) {}));
}

inline bool parse_element_size(std::string_view v, std::uint32_t& bytes) {
  if (v != "1" && v != "2" && v != "4" && v != "8") return false;
  bytes = static_cast<std::uint32_t>(v[0] - '0');
  return true;
}

inline bool parse_ring(std::string_view v, std::uint32_t& records) {
  std::uint64_t n = 0;
  if (!parse_bytes(v, n) || n < kSmallestRing || n > (1U << 22) || (n & (n - 1)) != 0) return false;
  records = static_cast<std::uint32_t>(n);
  return true;
}

// The users of these two parse the text themselves: `tprof ctl` may change the schedule, and the
// name in a mark points into its text.
inline bool parse_step_text(std::string_view v, StepText& to) {
  StepMark mark;
  return parse_step_mark(v, mark) && parse_text(v, to);
}
struct ScheduleText {
  WindowsBy by = WindowsBy::off;
  char text[kMaxSchedule + 1] = {};  // "": off
};
inline bool parse_schedule_text(std::string_view v, ScheduleText& to) {
  Schedule schedule;
  if (!parse_schedule(v, schedule)) return false;
  to.by = schedule.by;
  return parse_text(to.by == WindowsBy::off ? "" : v, to.text);
}

}  // namespace tprof
