#include "interpose/timing/reader.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/pages.h"
#include "interpose/driver/events.h"
#include "interpose/thread/ring.h"
#include "interpose/thread/transaction.h"
#include "interpose/timing/device_clock.h"
#include "interpose/timing/pairs.h"

namespace tprof::timing::reader {
namespace {

constexpr std::uint32_t kSoonMs = 10;
constexpr std::uint32_t kLaterMs = 200;

std::atomic<std::uint32_t> g_wake{0};      // futex: counts calls of wake()
std::atomic<std::uint32_t> g_asked{0};     // how often a last look was asked for
std::atomic<std::uint32_t> g_answered{0};  // futex: how many of them were taken

constinit Thread g_reader{};  // its own part of the ledger, and its records
DeviceClock g_clock[kPools];  // of each pool's device

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
    r.start_ns = start_ns;
    set_outcome(r, ns, 0);
    r.stream = reinterpret_cast<std::uintptr_t>(pair.stream);
    r.seq = pair.of.seq;
    set_comm(r, key.function == kMetaLaunch ? key.graph : key.comm);
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
    set_comm(r, static_cast<std::uint32_t>(clock.device()) + 1);
  });
}

void count(const Exposed& found) {
  Transaction transaction(g_reader);
  LedgerValues& v = transaction.values(beside(found.key, RowKind::waited));
  v.calls += found.calls;
  v.count += found.waited_ns;
  v.host_ns += found.exposed_ns;
  v.host_ns_max = std::max(v.host_ns_max, found.longest_ns);
  v.failed += found.late;
}

// What is to be read, in the order of the calls: on a stream behind one that is not through yet
// nothing else is.
class Reading {
 public:
  explicit Reading(Exposure& exposure) : exposure_(exposure) {}

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
              [](const Pair* a, const Pair* b) { return a->wait.number < b->wait.number; });
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
      if (pair->kind == Kind::call) lose(TimingLost::unread, pair->of);
      pool.give_back(*pair);
    }
  }

 private:
  bool read(Pool& pool, Pair& pair) {
    if (pair.kind != Kind::host && !read_events(pair)) return false;
    if (pair.kind == Kind::host) exposure_.wait(pair.wait);
    pair.to_read.store(false, std::memory_order_relaxed);
    pool.give_back(pair);
    return true;
  }

  // False: not through yet.
  bool read_events(Pair& pair) {
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
      take(pair, start_ns, static_cast<std::uint64_t>(ns));
    } else {
      if (pair.kind == Kind::call) lose(TimingLost::device, pair.of);
      if (!told) give_up();
    }
    return true;
  }

  // `start_ns`: 0 where the device's clock is not known.
  void take(Pair& pair, std::uint64_t start_ns, std::uint64_t ns) {
    // A stream with nothing to do comes to the first event at once, and then waits for the host.
    const bool call = pair.kind == Kind::call;
    const std::uint64_t host_ns = call ? pair.of.host_ns : pair.wait.enqueued_ns;
    if (start_ns != 0 && start_ns < host_ns) {
      const std::uint64_t idle = std::min(ns, host_ns - start_ns);
      start_ns += idle;
      ns -= idle;
    }
    if (call) count(pair, start_ns, ns);
    if (start_ns == 0) return;
    pair.wait.start_ns = start_ns;
    pair.wait.end_ns = start_ns + ns;
    if (pair.kind == Kind::wait) return exposure_.wait(pair.wait);
    exposure_.call({pair.wait, pair.of.key, pair.of.calls});
  }

  Exposure& exposure_;
  DeviceClock* clock_ = nullptr;
  Pages<Pair*> waiting_;
  Pages<CUstream> standing_;
};

void* run(void*) {
  prctl(PR_SET_NAME, "tprof-timing");
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  // For good: exit() would destroy a static one before we are through.
  void* room =
      mmap(nullptr, sizeof(Exposure), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto& exposure = *new (room) Exposure;
  Reading reading(exposure);
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
    exposure.settle(ending, [](const Exposed& found) { count(found); });
    if (ending) {
      g_answered.store(asked, std::memory_order_release);
      futex_wake(g_answered);
    }
    futex_wait(g_wake, seen, left == 0 ? kLaterMs : kSoonMs);
  }
}

}  // namespace

bool begin() {
  return attach_own(g_reader) && start_background_thread(run);
}

void wake() {
  g_wake.fetch_add(1, std::memory_order_release);
  futex_wake(g_wake);
}

void last_look(std::uint32_t timeout_ms) {
  const std::uint64_t until = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  const std::uint32_t mine = g_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  while (now_ns() < until) {
    const std::uint32_t answered = g_answered.load(std::memory_order_acquire);
    if (answered >= mine) return;
    futex_wait(g_answered, answered, kSoonMs);
  }
}

void after_fork() {
  for (DeviceClock& clock : g_clock) clock = {};
}

}  // namespace tprof::timing::reader
