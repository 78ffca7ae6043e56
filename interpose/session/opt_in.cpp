#include "interpose/session/opt_in.h"

#include "interpose/base/environment.h"
#include "interpose/session/config.h"

namespace tprof::opt_in {

std::atomic<std::uint8_t> g_hooks{0};

namespace {

bool is_on(Setting setting) {
  const char* value = environment_value(info(setting).name.data());
  return value != nullptr && !is_off(value);
}

}  // namespace

std::uint8_t read() {
  std::uint8_t hooks = kRead;
  if (!disabled_by_environment()) {
    if (is_on(Setting::driver)) hooks |= kDriver;
    if (is_on(Setting::dlsym)) hooks |= kDlsym;
  }
  g_hooks.store(hooks, std::memory_order_relaxed);
  return hooks;
}

}  // namespace tprof::opt_in
