#include "interpose/marks/known_rules.h"

#include <atomic>

#include "interpose/base/held_signals.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/shared_map.h"

namespace tprof::native {
namespace {

// Rules by address.
constinit SharedMap<Rule> g_known{LockOrder::frame_rules};
std::atomic<std::uint64_t> g_unloaded{0};

[[gnu::noinline]] Rule learn(std::uintptr_t address) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  const Rule rule = rule_at(address);
  g_known.insert(address, rule);
  return rule;
}

}  // namespace

Rule rule_of(std::uintptr_t address) {
  Rule rule;
  return g_known.find(address, rule) ? rule : learn(address);
}

bool forget_unloaded() {
  std::uint64_t unloaded = 0;
  each_loaded_object([&](const dl_phdr_info& any) {
    unloaded = any.dlpi_subs;
    return true;
  });
  if (g_unloaded.load() == unloaded) return false;
  g_known.clear();
  g_unloaded.store(unloaded);
  return true;
}

}  // namespace tprof::native
