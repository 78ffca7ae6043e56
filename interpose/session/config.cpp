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

// Reads the variable's value, or the default.
template <typename T>
void read_setting(Setting setting, bool (*parse)(std::string_view, T&), T& to, bool aloud) {
  const SettingInfo& s = info(setting);
  const std::string_view value = text_of(s.name.data());
  if (!value.empty() && parse(value, to)) return;
  if (!value.empty() && aloud) {
    char what[384];
    char expected[128];
    say((FixedText(what) << s.name << "=" << value).view(), ": expected ",
        (FixedText(expected) << s.values << "; using " << s.fallback).view());
  }
  parse(s.fallback, to);
}

void read_all(Config& c, bool aloud) {
#define TPROF_READ(field, variable, type, parse, ...) \
  read_setting(Setting::field, parse, c.field, aloud);
  TPROF_SETTINGS(TPROF_READ)
#undef TPROF_READ
}

// Reports misspelt settings, which otherwise silently do nothing.
void name_unknown_settings() {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::string_view name = prefix(entry, std::min(entry.find('='), std::size_t{128}));
    if (is_unknown_setting(name)) say(name, " is not a setting: `tprof doctor` says what is");
  }
}

}  // namespace

bool disabled_by_environment() {
  return is_on(text_of(info(Setting::disable).name.data()));
}

NvtxRanges nvtx_by_environment() {
  NvtxRanges ranges{};
  read_setting(Setting::nvtx, parse_nvtx, ranges, false);
  return ranges;
}

Config read_config() {
  Config c{};
  read_all(c, true);
  if (c.window_files && c.schedule.by == WindowsBy::off) {
    say("TPROF_WINDOW_FILES: without TPROF_SCHEDULE there are no windows");
    c.window_files = false;
  }
  name_unknown_settings();
  return c;
}

std::uint32_t opt_in::read() {
  std::uint32_t hooks = kRead;
  if (!disabled_by_environment()) {
    Config c{};
    read_all(c, false);
    const Watched watched = kTimers[static_cast<std::size_t>(c.timing.by)].watched;
    hooks |= (c.driver ? kDriver : 0) | (c.dlsym ? kDlsym : 0) | (c.memory ? kMemory : 0) |
             (watched == Watched::launches ? kEvents : 0) |
             (watched == Watched::cupti ? kCupti : 0);
  }
  g_hooks.store(hooks, std::memory_order_relaxed);
  return hooks;
}

}  // namespace tprof
