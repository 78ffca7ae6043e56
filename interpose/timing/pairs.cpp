#include "interpose/timing/pairs.h"

#include <new>

#include "interpose/base/own_memory.h"
#include "interpose/driver/events.h"

namespace tprof::timing {

constinit Pool g_pools[kPools];

Pool* pool_of(CUcontext context) {
  for (Pool& pool : g_pools) {
    if (pool.context() == context || pool.claim(context) || pool.context() == context) return &pool;
  }
  return nullptr;
}

bool Pool::wants_more() const {
  return free_.load(std::memory_order_relaxed) < 2 * kStep && made() < kMost;
}

bool Pool::make_more(std::uint32_t number) {
  if (making_.exchange(true, std::memory_order_acquire)) return true;
  bool well = true;
  if (pair_ == nullptr) pair_ = static_cast<Pair*>(take_memory(kMost * sizeof(Pair)));
  const std::uint32_t from = made();
  for (std::uint32_t i = from; well && pair_ != nullptr && i < from + kStep && i < kMost; ++i) {
    Pair& p = *new (&pair_[i]) Pair;
    p.pool = number;
    well = event_driver::make(p.begin) && event_driver::make(p.end);
    if (!well) break;
    made_.store(i + 1, std::memory_order_release);
    give_back(p);
  }
  making_.store(false, std::memory_order_release);
  return well;
}

Pair* Pool::take() {
  Pair* pair = free_pairs_.take(pair_);
  if (pair != nullptr) free_.fetch_sub(1, std::memory_order_relaxed);
  return pair;
}

void Pool::give_back(Pair& pair) {
  pair.since_ns.store(0, std::memory_order_relaxed);
  free_.fetch_add(1, std::memory_order_relaxed);
  free_pairs_.give_back(pair_, pair);
}

void Pool::forget() {
  if (pair_ != nullptr) give_back_memory(pair_, kMost * sizeof(Pair));
  new (this) Pool;
}

}  // namespace tprof::timing
