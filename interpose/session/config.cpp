#include "interpose/session/config.h"

#include <algorithm>
#include <string_view>

#include "interpose/base/complain.h"
#include "interpose/base/environment.h"

namespace tprof {
namespace {

std::string_view text_of(const char* name) {
  const char* value = environment_value(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_on(Setting setting) {
  return !is_off(text_of(info(setting).name.data()));
}

// Returns the value in force: the variable's, or the default.
std::string_view in_force(Setting setting) {
  const SettingInfo& s = info(setting);
  const std::string_view value = text_of(s.name.data());
  if (value.empty()) return s.fallback;
  if (s.accepts(value)) return value;
  char what[384];
  char expected[128];
  say((FixedText(what) << s.name << "=" << value).view(), ": expected ",
      (FixedText(expected) << s.values << "; using " << s.fallback).view());
  return s.fallback;
}

// Reports misspelt settings, which would silently do nothing.
void name_unknown_settings() {
  for (char** e = environment(); e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::string_view name = prefix(entry, std::min(entry.find('='), std::size_t{128}));
    if (is_unknown_setting(name)) {
      say(name, " is not a setting: they are in the README, and tprof doctor knows the nearest");
    }
  }
}

}  // namespace

bool disabled_by_environment() {
  return is_on(Setting::disable);
}

NvtxRanges nvtx_by_environment() {
  const std::string_view value = text_of(info(Setting::nvtx).name.data());
  return value == "off" ? NvtxRanges::off : value == "nccl" ? NvtxRanges::nccl : NvtxRanges::all;
}

bool rank_in_list(const char* list, std::int64_t rank) {
  bool found = false;
  each_range(list, [&](std::int64_t first, std::int64_t last) {
    found = found || (first <= rank && rank <= last);
  });
  return found;
}

Config read_config() {
  Config c{};
  copy_text(c.output_dir, in_force(Setting::output_dir));
  copy_text(c.run_id, text_of(info(Setting::run_id).name.data()));
  const std::string_view ring_dir = in_force(Setting::ring_dir);
  if (ring_dir != "auto") copy_text(c.ring_dir, ring_dir);
  const std::string_view events = in_force(Setting::events);
  c.events = events == "off" ? EventLines::off : events == "all" ? EventLines::all : EventLines::on;
  parse_timing(in_force(Setting::timing), c.timing);
  parse_call_site(in_force(Setting::call_site), c.call_site);
  parse_bytes(in_force(Setting::quota), c.quota);
  const std::string_view ranks = in_force(Setting::ranks);
  c.all_ranks = ranks == "all";
  if (!c.all_ranks) copy_text(c.ranks, ranks);
  c.copy_element_size = static_cast<std::uint32_t>(in_force(Setting::copy_element_size)[0] - '0');
  std::uint64_t records = 0;
  parse_bytes(in_force(Setting::ring), records);
  c.ring_records = static_cast<std::uint32_t>(records);
  copy_text(c.step_mark, in_force(Setting::step));
  const std::string_view schedule = in_force(Setting::schedule);
  Schedule windows;
  parse_schedule(schedule, windows);
  c.windows_by = windows.by;
  if (windows.by != WindowsBy::off) copy_text(c.schedule, schedule);
  c.window_files = is_on(Setting::window_files) && windows.by != WindowsBy::off;
  if (is_on(Setting::window_files) && !c.window_files) {
    say("TPROF_WINDOW_FILES: without TPROF_SCHEDULE there are no windows");
  }
  c.cuda_profiler = is_on(Setting::cuda_profiler) && windows.by == WindowsBy::steps;
  parse_metrics(in_force(Setting::metrics), c.metrics);
  c.redact = in_force(Setting::redact) == "on";
  in_force(Setting::nvtx);  // in force since before: only reports a bad value
  name_unknown_settings();
  return c;
}

std::uint8_t opt_in::read() {
  std::uint8_t hooks = kRead;
  if (!disabled_by_environment()) {
    if (is_on(Setting::driver)) hooks |= kDriver;
    if (is_on(Setting::dlsym)) hooks |= kDlsym;
    if (is_on(Setting::memory)) hooks |= kMemory;
    const std::string_view timing = text_of(info(Setting::timing).name.data());
    if (timing == "cupti") hooks |= kCupti;
    if (timing.starts_with("events")) hooks |= kEvents;
  }
  g_hooks.store(hooks, std::memory_order_relaxed);
  return hooks;
}

}  // namespace tprof
