#include "interpose/device/pairs.h"

#include <new>

#include "interpose/base/own_memory.h"
#include "interpose/device/mode.h"
#include "interpose/real/driver_events.h"

namespace tprof::device {

constinit Pool g_pools[kPools];

Pool* pool_of(CUcontext context) {
  for (Pool& pool : g_pools) {
    if (pool.context() == context || pool.claim(context) || pool.context() == context) return &pool;
  }
  return nullptr;
}

bool Pool::wants_more() const {
  return free_.load(std::memory_order_relaxed) < 2 * kStep && events() < kMost;
}

bool Pool::has_pairs() {
  if (pair_.load(std::memory_order_acquire) != nullptr) return true;
  void* const made = take_memory(kMost * sizeof(Pair));
  Pair* none = nullptr;
  if (made == nullptr) return false;
  if (!pair_.compare_exchange_strong(none, static_cast<Pair*>(made))) {
    give_back_memory(made, kMost * sizeof(Pair));
  }
  return true;
}

Pair* Pool::without_events() {
  if (!has_pairs()) return nullptr;
  if (Pair* pair = without_events_.take(pair_)) return pair;
  std::uint32_t i = made();
  do {
    if (i == kMost) return nullptr;
  } while (!made_.compare_exchange_weak(i, i + 1));
  pair(i).pool = number_of(*this);
  return &pair(i);
}

bool Pool::make_more() {
  int device = 0;
  if (!event_driver::device(device)) return false;
  device_ = device;
  for (std::uint32_t i = 0; i < kStep; ++i) {
    Pair* pair = without_events();
    if (pair == nullptr) break;
    const bool well = event_driver::make(pair->begin) && event_driver::make(pair->end);
    if (!well) pair->begin = pair->end = nullptr;
    give_back(*pair);
    if (!well) return false;
    events_.fetch_add(1, std::memory_order_release);
  }
  return true;
}

Pair* Pool::take() {
  Pair* pair = free_pairs_.take(pair_);
  if (pair != nullptr) free_.fetch_sub(1, std::memory_order_relaxed);
  return pair;
}

void Pool::give_back(Pair& pair) {
  pair.since_ns.store(0, std::memory_order_relaxed);
  if (pair.end == nullptr) return without_events_.give_back(pair_, pair);
  free_.fetch_add(1, std::memory_order_relaxed);
  free_pairs_.give_back(pair_, pair);
}

void Pool::renew() {
  for (std::uint32_t i = 0; i < made(); ++i) pair(i).begin = pair(i).end = nullptr;
  for (std::uint32_t i = 0; i < made(); ++i) {
    Pair& p = pair(i);
    if (!p.to_read.exchange(false)) continue;
    if (p.kind == Kind::call) lose(TimingLost::unread, p.of);
    give_back(p);
  }
  while (Pair* p = take()) give_back(*p);
  ++renewals_;
  events_.store(0, std::memory_order_release);
  device_.store(kNotKnown, std::memory_order_release);
  context_.store(nullptr, std::memory_order_release);
}

void Pool::abandon() {
  events_.store(0, std::memory_order_release);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody's
  context_.store(reinterpret_cast<CUcontext>(UINTPTR_MAX), std::memory_order_release);
}

void Pool::forget() {
  if (pair_.load() != nullptr) give_back_memory(pair_, kMost * sizeof(Pair));
  new (this) Pool;
}

}  // namespace tprof::device
