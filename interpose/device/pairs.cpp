#include "interpose/device/pairs.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "interpose/base/held_signals.h"
#include "interpose/base/own_memory.h"
#include "interpose/device/mode.h"
#include "interpose/real/driver.h"
#include "interpose/real/stream_gates.h"

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

bool Pool::make_more() {
  int device = 0;
  if (!driver::device(device)) return false;
  device_ = device;
  for (std::uint32_t n = 0; n < kStep && has_pairs(); ++n) {
    std::uint32_t i = made();
    do {
      if (i == kMost) return true;
    } while (!made_.compare_exchange_weak(i, i + 1));
    Pair& made = pair(i);
    made.pool = number_of(*this);
    if (!driver::make(made.begin) || !driver::make(made.end)) return false;
    give_back(made);
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
  free_.fetch_add(1, std::memory_order_relaxed);
  free_pairs_.give_back(pair_, pair);
}

void Pool::forget() {
  if (pair_.load() != nullptr) give_back_memory(pair_, kMost * sizeof(Pair));
  new (this) Pool;
}

ContextsGo::ContextsGo(int device, CUcontext context, bool surely) {
  constexpr std::uint32_t kLongestMs = 100;
  const KeepErrno keep_errno;
  const bool current = context == nullptr && device < 0;
  if (current && !driver::device(device)) device = t_thread.device;
  has_events_ = std::any_of(g_pools, g_pools + kPools, [&](const Pool& pool) {
    return context != nullptr ? pool.context() == context
                              : pool.device() == device && pool.context() != nullptr;
  });
  if (!has_events_) return;
  if (surely) own_thread::read_now(kLongestMs);
  g_contexts.close();
  stream_gates::let_all_leave();
}

ContextsGo::~ContextsGo() {
  if (has_events_ && !gone_) g_contexts.open();
}

void ContextsGo::gone() {
  if (!has_events_) return;
  gone_ = true;
  for (Pool& pool : g_pools) {
    for (std::uint32_t i = 0; i < pool.made(); ++i) {
      Pair& pair = pool.pair(i);
      const bool unread = pair.to_read.exchange(false);
      if (unread && pair.kind == Kind::call) lose(TimingLost::unread, pair.of);
    }
  }
  give_up("the program has destroyed a context of CUDA");
}

namespace comm_order {

namespace {

// The last call of a communicator. NCCL requires that one thread at a time uses a communicator.
struct Last {
  std::atomic<std::uint32_t> comm;
  std::atomic<std::uint64_t> stream;
  std::atomic<std::uint64_t> number;
  std::atomic<bool> several;
};
constexpr std::uint32_t kPlaces = 1024;
constinit Last g_last[kPlaces]{};

}  // namespace

bool on_several_streams(std::uint32_t comm) {
  const Last& last = g_last[comm % kPlaces];
  return last.comm.load(std::memory_order_relaxed) == comm &&
         last.several.load(std::memory_order_relaxed);
}

InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number) {
  if (comm == 0) return {};
  Last& last = g_last[comm % kPlaces];
  const bool known = last.comm.exchange(comm, std::memory_order_relaxed) == comm;
  const std::uint64_t stream_before = last.stream.exchange(stream, std::memory_order_relaxed);
  const std::uint64_t number_before = last.number.exchange(number, std::memory_order_relaxed);
  if (!known) last.several.store(false, std::memory_order_relaxed);
  if (!known || stream_before == stream) return {comm, InOrder::kNone};
  last.several.store(true, std::memory_order_relaxed);
  return {comm, number_before};
}

void after_fork() {
  for (Last& last : g_last) last.comm.store(0, std::memory_order_relaxed);
}

}  // namespace comm_order

}  // namespace tprof::device
