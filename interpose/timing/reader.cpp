#include "interpose/timing/reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/pages.h"
#include "interpose/driver/events.h"
#include "interpose/timing/device_clock.h"
#include "interpose/timing/pairs.h"
#include "interpose/timing/results.h"

namespace tprof::timing::reader {
namespace {

DeviceClock g_clock[kPools];  // of each pool's device

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
    if (clock_->due(now_ns()) && clock_->anchor()) {
      const DeviceClock& c = *clock_;
      results::add_clock(c.device(), c.anchored_ns(), c.error_ns(), c.drift_ppb());
    }
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
    if (call) results::add(pair.of, pair.stream, start_ns, ns);
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

struct Reader {
  Exposure exposure;
  Reading reading{exposure};
  bool first = true;
};

// For good: exit() would destroy a static one before we are through.
Reader* make_reader() {
  void* room =
      mmap(nullptr, sizeof(Reader), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room == MAP_FAILED ? nullptr : new (room) Reader;
}
Reader* g_reader = nullptr;

}  // namespace

std::uint32_t look(bool ending) {
  constexpr std::uint32_t kSoonMs = 10;
  constexpr std::uint32_t kLaterMs = 200;
  if (g_reader == nullptr) g_reader = make_reader();
  if (g_reader == nullptr) return kLaterMs;
  std::size_t left = 0;
  for (Pool& pool : g_pools) {
    if (pool.context() == nullptr || !event_driver::enter(pool.context())) continue;
    if (std::exchange(g_reader->first, false)) event_driver::stay_out_of_captures();
    if (on() && pool.wants_more() && !pool.make_more(number_of(pool))) give_up();
    left += g_reader->reading.read(pool);
    if (ending) g_reader->reading.lose_rest(pool);
  }
  g_reader->exposure.settle(ending, [](const Exposed& found) { results::add(found); });
  return left == 0 ? kLaterMs : kSoonMs;
}

void after_fork() {
  for (DeviceClock& clock : g_clock) clock = {};
  g_reader = nullptr;
}

}  // namespace tprof::timing::reader
