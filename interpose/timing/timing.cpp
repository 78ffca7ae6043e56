#include "interpose/timing/timing.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <ctime>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/pages.h"
#include "interpose/driver/events.h"
#include "interpose/thread/ring.h"
#include "interpose/thread/transaction.h"
#include "interpose/timing/device_clock.h"
#include "interpose/timing/pairs.h"

namespace tprof::timing {
namespace {

constexpr std::uint32_t kPools = 16;  // contexts of one process: one for each device, as a rule
constexpr std::uint32_t kSoonMs = 10;
constexpr std::uint32_t kLaterMs = 200;

constinit Pool g_pools[kPools];
std::atomic<std::uint32_t> g_every{0};  // 0: no thread reads
std::atomic<std::uint64_t> g_order{0};
std::atomic<std::uint32_t> g_wake{0};      // futex: counts calls of wake()
std::atomic<std::uint32_t> g_asked{0};     // how often a last look was asked for
std::atomic<std::uint32_t> g_answered{0};  // futex: how many of them were taken

constinit Thread g_reader{};  // its own part of the ledger, and its records
DeviceClock g_clock[kPools];  // of each pool's device

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint32_t ms) {
  const timespec timeout{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void wake() {
  g_wake.fetch_add(1, std::memory_order_release);
  futex_wake(g_wake);
}

void lose(TimingLost why, std::uint64_t calls) {
  session::mapping().head().timing_lost[static_cast<std::size_t>(why)].fetch_add(
      calls, std::memory_order_relaxed);
}

// The device is gone, or was reset: what it was to tell is not known. Nothing else ends by that.
void give_up() {
  if (!g_on.exchange(false)) return;
  complain(Trouble::timing, "calls are not timed any more: the CUDA driver refuses our events");
}

// The pool of `context`, also of one that has none yet.
Pool* pool_of(CUcontext context) {
  for (Pool& pool : g_pools) {
    if (pool.context() == context || pool.claim(context) || pool.context() == context) return &pool;
  }
  return nullptr;
}

std::uint32_t number_of(const Pool& pool) {
  return static_cast<std::uint32_t>(&pool - g_pools);
}

// The ledger's part of what was read, and `fill`'s record with it, if the ring has room.
template <typename Fill>
void close_record(Transaction& transaction, std::uint8_t function, Fill&& fill) {
  bool in_ring = false;
  Record& r = next_record(g_reader, true, in_ring);
  if (!in_ring) return;
  r = {};
  fill(r);
  publish(g_reader, r, function, true);
  transaction.close(r);
}

// `start_ns`: 0 where the device's clock is not known.
void count(const Pair& pair, std::uint64_t start_ns, std::uint64_t ns) {
  Transaction transaction(g_reader);
  LedgerValues& v = transaction.values(timed(pair.of.key));
  v.calls += pair.of.calls;
  v.count += pair.of.count;
  v.host_ns += ns;
  v.host_ns_max = std::max(v.host_ns_max, ns / pair.of.calls);
  if (start_ns == 0) return;
  close_record(transaction, kMetaDevice, [&](Record& r) {
    const auto key = std::bit_cast<LedgerKey>(pair.of.key);
    r.start_ns = std::max(start_ns, pair.of.host_ns);  // the clock's error
    set_outcome(r, ns, 0);
    r.stream = reinterpret_cast<std::uintptr_t>(pair.stream);
    r.seq = pair.of.seq;
    r.comm = key.function == kMetaLaunch ? key.graph : key.comm;
    r.bucket = key.bucket;
    set_timed_call(r, key.function, pair.of.calls, pair.of.host_ns, pair.of.tid);
  });
}

void tell(const DeviceClock& clock) {
  Transaction transaction(g_reader);
  close_record(transaction, kMetaDeviceClock, [&](Record& r) {
    r.start_ns = clock.anchored_ns();
    set_outcome(r, clock.error_ns(), 0);
    r.count = static_cast<std::uint64_t>(clock.drift_ppb());
    r.comm = static_cast<std::uint32_t>(clock.device()) + 1;
  });
}

// What is to be read, in the order of the calls: on a stream behind one that is not through yet
// nothing else is.
class Reading {
 public:
  // How many are left.
  std::size_t read(Pool& pool) {
    waiting_.clear();
    standing_.clear();
    for (std::uint32_t i = 0; i < pool.made(); ++i) {
      Pair& pair = pool.pair(i);
      if (pair.to_read.load(std::memory_order_acquire)) waiting_.push_back(&pair);
    }
    if (waiting_.size() == 0) return 0;
    std::sort(waiting_.begin(), waiting_.end(),
              [](const Pair* a, const Pair* b) { return a->order < b->order; });
    clock_ = &g_clock[number_of(pool)];
    if (clock_->due(now_ns()) && clock_->anchor()) tell(*clock_);
    std::size_t left = 0;
    for (Pair* pair : waiting_) left += read(pool, *pair) ? 0 : 1;
    return left;
  }
  void lose_rest(Pool& pool) {
    read(pool);
    for (Pair* pair : waiting_) {
      if (!pair->to_read.exchange(false)) continue;
      lose(TimingLost::unread, pair->of.calls);
      pool.give_back(*pair);
    }
  }

 private:
  bool read(Pool& pool, Pair& pair) {
    if (std::find(standing_.begin(), standing_.end(), pair.stream) != standing_.end()) return false;
    const event_driver::Reached reached = event_driver::reached(pair.end);
    if (reached == event_driver::Reached::not_yet) {
      standing_.push_back(pair.stream);
      return false;
    }
    double ns = -1;
    const bool told =
        reached == event_driver::Reached::yes && event_driver::elapsed(pair.begin, pair.end, ns);
    if (ns >= 0) {
      std::uint64_t start_ns = 0;
      if (!clock_->time_of(pair.begin, start_ns)) start_ns = 0;
      count(pair, start_ns, static_cast<std::uint64_t>(ns));
    } else {
      lose(TimingLost::device, pair.of.calls);
      if (!told) give_up();
    }
    pair.to_read.store(false, std::memory_order_relaxed);
    pool.give_back(pair);
    return true;
  }

  DeviceClock* clock_ = nullptr;
  Pages<Pair*> waiting_;
  Pages<CUstream> standing_;
};

void* run(void*) {
  prctl(PR_SET_NAME, "tprof-timing");
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  Reading reading;  // for good: exit() would destroy a static one before we are through
  for (bool first = true;;) {
    const std::uint32_t seen = g_wake.load(std::memory_order_acquire);
    const std::uint32_t asked = g_asked.load(std::memory_order_acquire);
    const bool ending = asked != g_answered.load(std::memory_order_relaxed);
    std::size_t left = 0;
    for (Pool& pool : g_pools) {
      if (pool.context() == nullptr || !event_driver::enter(pool.context())) continue;
      if (std::exchange(first, false)) event_driver::stay_out_of_captures();
      if (on() && pool.wants_more() && !pool.make_more(number_of(pool))) give_up();
      left += reading.read(pool);
      if (ending) reading.lose_rest(pool);
    }
    if (ending) {
      g_answered.store(asked, std::memory_order_release);
      futex_wake(g_answered);
    }
    futex_wait(g_wake, seen, left == 0 ? kLaterMs : kSoonMs);
  }
}

}  // namespace

TimedCall start(CUstream stream, std::uint64_t number) {
  const std::uint32_t every = g_every.load(std::memory_order_relaxed);
  if (number == kNoNumber) number = g_order.fetch_add(1, std::memory_order_relaxed);
  if (every > 1 && mix64(number) % every != 0) return {};
  CUcontext context = event_driver::context_to_time_in(stream);
  Pool* pool = context == nullptr ? nullptr : pool_of(context);
  if (pool == nullptr) return {nullptr, true, TimingLost::no_context};
  const bool first = pool->made() == 0 && event_driver::is_in(context);
  if (first && !pool->make_more(number_of(*pool))) give_up();
  Pair* pair = pool->take();
  if (pool->wants_more()) wake();
  if (pair == nullptr) return {nullptr, true, TimingLost::no_pair};
  pair->stream = stream;
  if (event_driver::record(pair->begin, stream)) return {pair};
  pool->give_back(*pair);
  give_up();
  return {nullptr, true, TimingLost::device};
}

void stop(const TimedCall& timed, const Calls& of, bool in_progress) {
  if (timed.pair == nullptr) {
    if (timed.lost) lose(timed.why, of.calls);
    return;
  }
  Pair& pair = *timed.pair;
  pair.of = of;
  pair.of.key = of_thread(of.key, t_thread.area->kind);
  pair.order = g_order.fetch_add(1, std::memory_order_relaxed);
  const bool recorded = !in_progress && event_driver::record(pair.end, pair.stream);
  if (recorded) return pair.to_read.store(true, std::memory_order_release);
  lose(in_progress ? TimingLost::in_progress : TimingLost::device, of.calls);
  drop(timed);
  if (!in_progress) give_up();
}

void drop(const TimedCall& timed) {
  if (timed.pair != nullptr) g_pools[timed.pair->pool].give_back(*timed.pair);
}

void begin(std::uint32_t every) {
  if (every == 0 || !attach_own(g_reader)) return;
  g_every.store(every, std::memory_order_relaxed);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  const NoSignals inherited_by_the_thread;
  pthread_t thread;
  g_on.store(pthread_create(&thread, &attributes, run, nullptr) == 0, std::memory_order_relaxed);
  pthread_attr_destroy(&attributes);
}

void end(std::uint32_t timeout_ms) {
  if (!g_on.exchange(false)) return;
  const std::uint64_t until = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  const std::uint32_t mine = g_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  while (now_ns() < until) {
    const std::uint32_t answered = g_answered.load(std::memory_order_acquire);
    if (answered >= mine) return;
    futex_wait(g_answered, answered, kSoonMs);
  }
}

void go_on() {
  g_on.store(g_every.load(std::memory_order_relaxed) != 0, std::memory_order_relaxed);
}

void after_fork() {
  g_on.store(false, std::memory_order_relaxed);
  g_every.store(0, std::memory_order_relaxed);
  for (Pool& pool : g_pools) pool.forget();
  for (DeviceClock& clock : g_clock) clock = {};
}

}  // namespace tprof::timing
