#include "interpose/sites/known_rules.h"

#include <atomic>
#include <bit>
#include <cstddef>

#include "interpose/base/held_signals.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"

namespace tprof::native {
namespace {

// Rules by address. A rule that finds no place is looked up each time.
constexpr unsigned kRuleBits = 14;
constexpr std::size_t kRules = std::size_t{1} << kRuleBits;  // 256 KiB, touched as used
constexpr std::size_t kProbe = 16;
struct Known {
  std::atomic<std::uintptr_t> address;
  std::atomic<std::uint64_t> rule;
};
Known g_known[kRules];
Lock g_rules_lock{LockOrder::frame_rules};
std::uint64_t g_unloaded = 0;

Known& known(std::uintptr_t address, std::size_t n) {
  return g_known[((address * 0x9e3779b97f4a7c15ULL >> (64 - kRuleBits)) + n) % kRules];
}

[[gnu::noinline]] Rule learn(std::uintptr_t address) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  const Rule rule = rule_at(address);
  const LockGuard guard(g_rules_lock);
  for (std::size_t n = 0; n < kProbe; ++n) {
    Known& k = known(address, n);
    const std::uintptr_t taken = k.address.load(std::memory_order_relaxed);
    if (taken == address) break;
    if (taken != 0) continue;
    k.rule.store(std::bit_cast<std::uint64_t>(rule), std::memory_order_release);
    k.address.store(address, std::memory_order_release);
    break;
  }
  return rule;
}

}  // namespace

Rule rule_of(std::uintptr_t address) {
  for (std::size_t n = 0; n < kProbe; ++n) {
    const Known& k = known(address, n);
    const std::uintptr_t taken = k.address.load(std::memory_order_acquire);
    if (taken == 0) break;
    if (taken != address) continue;
    const std::uint64_t word = k.rule.load(std::memory_order_acquire);
    if (k.address.load(std::memory_order_relaxed) == address) return std::bit_cast<Rule>(word);
    break;  // forgotten meanwhile, and the place given to another
  }
  return learn(address);
}

bool forget_unloaded() {
  std::uint64_t unloaded = 0;
  each_loaded_object([&](const dl_phdr_info& any) {
    unloaded = any.dlpi_subs;
    return true;
  });
  const LockGuard guard(g_rules_lock);
  if (unloaded == g_unloaded) return false;
  g_unloaded = unloaded;
  for (Known& k : g_known) {
    if (k.address.load(std::memory_order_relaxed) != 0) k.address.store(0);
  }
  return true;
}

}  // namespace tprof::native
