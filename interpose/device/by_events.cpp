// TPROF_TIMING=events: puts a pair of events into the call's stream, one before and one after the
// call, and reads them.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/pages.h"
#include "interpose/device/exposure.h"
#include "interpose/device/intervals.h"
#include "interpose/device/mode.h"
#include "interpose/device/pairs.h"
#include "interpose/device/results.h"
#include "interpose/device/streams.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/thread.h"

namespace tprof::device {

constexpr const char* kRefused = "the CUDA driver refuses our events";

// Reads the pairs that the device has reached.
namespace reader {
namespace {

// Converts times of a device's events to the host's clock (CLOCK_MONOTONIC). An anchor is an event
// on our own stream; the host reads its clock before and after it. The driver gives the time from
// the anchor to other events.
//
// A new anchor is made every 4 s, since the driver gives that time as a float of milliseconds,
// which resolves half a microsecond at 4 s, and only one at 8 s.
class DeviceClock {
 public:
  static constexpr std::uint64_t kEveryNs = 4'000'000'000;

  // True 4 s after the last anchor, or 1 s after a failed try.
  bool due(std::uint64_t now_ns) const { return now_ns >= next_ns_; }
  // Call this in the device's context. If the device does not answer within 2 ms, returns false and
  // keeps the old anchor.
  bool anchor() {
    next_ns_ = now_ns() + kAgainNs;
    if (stream_ == nullptr) {
      if (!driver::device(device_) || !driver::make(stream_)) return false;
    }
    for (CUevent& event : event_) {
      if (event == nullptr && !driver::make(event)) return false;
    }
    Anchor best;
    if (!measure(best)) return false;
    double device_ns = 0;
    if (current_.event != kNone) {
      if (!driver::elapsed(event_[current_.event], event_[best.event], device_ns)) return false;
      device_ns += past_[(anchors_ - 1) % kKept].device_ns;
    }
    current_ = best;
    follow_drift(device_ns);
    next_ns_ = current_.host_ns + kEveryNs;
    return true;
  }

  // Returns false if there is no anchor, or the driver refuses.
  bool time_of(CUevent reached, std::uint64_t& ns) const {
    double since = 0;
    if (current_.event == kNone) return false;
    if (!driver::elapsed(event_[current_.event], reached, since)) return false;
    ns = current_.host_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * rate_));
    return true;
  }

  int device() const { return device_; }
  std::uint64_t anchored_ns() const { return current_.host_ns; }
  // The largest possible error of the anchor.
  std::uint64_t error_ns() const { return current_.error_ns; }
  // Nanoseconds per second by which the host's clock is faster than the device's.
  std::int64_t drift_ppb() const { return static_cast<std::int64_t>((rate_ - 1) * 1e9); }

 private:
  static constexpr int kNone = -1;
  static constexpr int kLooks = 8;
  static constexpr std::uint64_t kPatienceNs = 2'000'000;
  static constexpr std::uint64_t kAgainNs = 1'000'000'000;
  struct Anchor {
    int event = kNone;
    std::uint64_t host_ns = 0;
    std::uint64_t error_ns = 0;
  };
  // Takes the best of a few readings, with the host's clock read before and after each. Returns
  // false if the device did not answer.
  bool measure(Anchor& best) {
    best.error_ns = UINT64_MAX;
    for (int i = 0; i < kLooks; ++i) {
      int mine = 0;
      while (mine == current_.event || mine == best.event) ++mine;
      const std::uint64_t before = now_ns();
      if (!driver::record(event_[mine], stream_)) return false;
      driver::Reached reached{};
      std::uint64_t after = 0;
      do {
        reached = driver::reached(event_[mine]);
        after = now_ns();
      } while (reached == driver::Reached::not_yet && after - before < kPatienceNs);
      if (reached != driver::Reached::yes) return false;
      const std::uint64_t error = (after - before) / 2 + 1;
      if (error < best.error_ns) best = {mine, before + error, error};
    }
    return true;
  }

  void follow_drift(double device_ns) {
    past_[anchors_ % kKept] = {device_ns, current_.host_ns};
    const Past& first = past_[anchors_ < kKept ? 0 : (anchors_ + 1) % kKept];
    ++anchors_;
    const double device_time = device_ns - first.device_ns;
    const auto host_time = static_cast<double>(current_.host_ns - first.host_ns);
    if (device_time > 1e9) rate_ = host_time / device_time;
  }

  // The drift is measured over about a minute, since each anchor may be wrong by microseconds.
  static constexpr std::uint32_t kKept = 16;
  struct Past {
    double device_ns;  // since the first anchor
    std::uint64_t host_ns;
  };

  CUstream stream_ = nullptr;
  CUevent event_[3] = {};  // the anchor, the best reading, and one for the next reading
  Anchor current_;
  std::uint64_t next_ns_ = 0;
  double rate_ = 1;  // host time per device time
  Past past_[kKept] = {};
  std::uint32_t anchors_ = 0;
  int device_ = 0;
};

DeviceClock g_clock[kPools];  // of each pool's device

// Reads pairs in the order of calls. If the device has not finished one, it has not finished later
// ones of its stream or communicator either.
class Reading {
 public:
  explicit Reading(Exposure& exposure) : exposure_(exposure) {}

  // Returns how many are left.
  std::size_t read(Pool& pool) {
    waiting_.clear();
    standing_.clear();
    standing_comms_.clear();
    for (std::uint32_t i = 0; i < pool.made(); ++i) {
      Pair& pair = pool.pair(i);
      const std::uint64_t since_ns = pair.since_ns.load(std::memory_order_relaxed);
      if (since_ns != 0) exposure_.running(since_ns);
      if (pair.to_read.load(std::memory_order_acquire)) waiting_.push_back(&pair);
    }
    if (waiting_.size() == 0) return 0;
    std::sort(waiting_.begin(), waiting_.end(),
              [](const Pair* a, const Pair* b) { return a->number < b->number; });
    clock_ = &g_clock[number_of(pool)];
    if (clock_->due(now_ns()) && clock_->anchor()) {
      const DeviceClock& c = *clock_;
      results::add_clock(c.device(), c.anchored_ns(), c.error_ns(), c.drift_ppb());
    }
    std::size_t left = 0;
    for (Pair* pair : waiting_) {
      if (!g_contexts.closed() && read(*pair)) {
        pair->to_read.store(false, std::memory_order_relaxed);
        pool.give_back(*pair);
      } else {
        ++left;
        scopes_left_ += pair->kind == Kind::scope ? 1 : 0;
      }
    }
    return left;
  }
  // Returns, and resets, how many scopes are left.
  std::uint32_t take_scopes_left() { return std::exchange(scopes_left_, 0); }
  void lose_rest(Pool& pool) {
    read(pool);
    for (Pair* pair : waiting_) {
      if (!pair->to_read.exchange(false)) continue;
      if (pair->kind == Kind::call) lose(TimingLost::unread, pair->of);
      pool.give_back(*pair);
    }
  }

 private:
  // When a communicator's last read call ended.
  struct Ended {
    std::uint32_t comm;
    std::uint64_t number;
    std::uint64_t at_ns;
  };

  // Returns false if the device has not finished it yet.
  bool read(Pair& pair) {
    const bool stands =
        std::find(standing_.begin(), standing_.end(), pair.stream) != standing_.end() ||
        (pair.order.comm != 0 && std::find(standing_comms_.begin(), standing_comms_.end(),
                                           pair.order.comm) != standing_comms_.end());
    CUevent last = pair.kind == Kind::mark ? pair.begin : pair.end;
    const auto reached = stands ? driver::Reached::not_yet : driver::reached(last);
    if (reached == driver::Reached::not_yet) {
      if (!stands) standing_.push_back(pair.stream);
      if (pair.order.comm != 0) standing_comms_.push_back(pair.order.comm);
      if (pair.kind == Kind::mark) exposure_.standing(pair.mark);
      return false;
    }
    std::uint64_t at_ns = 0;
    const bool known = reached == driver::Reached::yes && clock_->time_of(last, at_ns);
    if (pair.kind == Kind::mark) {
      take_mark(pair.mark, known ? at_ns : 0);
    } else if (pair.kind != Kind::tail) {
      take_call(pair, reached);
    }
    if (pair.order.comm != 0) ended(pair.order.comm) = {pair.order.comm, pair.number, at_ns};
    return true;
  }

  void take_mark(Mark& mark, std::uint64_t at_ns) {
    if (at_ns == 0) return exposure_.missed(mark, ExposureLost::no_clock);
    mark.at_ns = at_ns;
    exposure_.mark(mark);
  }

  void take_call(const Pair& pair, driver::Reached reached) {
    double elapsed = -1;
    const bool known =
        reached == driver::Reached::yes && driver::elapsed(pair.begin, pair.end, elapsed);
    if (elapsed < 0) {
      const bool never = reached == driver::Reached::never;
      if (pair.kind == Kind::call) lose(never ? TimingLost::unread : TimingLost::device, pair.of);
      if (!known) give_up(kRefused);
      return;
    }
    auto ns = static_cast<std::uint64_t>(elapsed);
    if (pair.kind == Kind::scope) return results::add(pair.of, pair.stream, 0, ns);
    std::uint64_t start_ns = 0;  // 0: the device's clock is not known
    if (!clock_->time_of(pair.begin, start_ns)) start_ns = 0;
    // An idle stream reaches the first event at once, and then waits for the host.
    if (start_ns != 0) begin_later(start_ns, ns, pair.of.host_ns);
    if (pair.order.after != InOrder::kNone) {
      const Ended& before = ended(pair.order.comm);
      if (start_ns == 0 || before.number != pair.order.after || before.at_ns == 0) {
        return lose(TimingLost::order, pair.of);
      }
      begin_later(start_ns, ns, before.at_ns);
    }
    results::add(pair.of, pair.stream, start_ns, ns);
    const auto key = std::bit_cast<LedgerKey>(pair.of.key);
    if (pair.of.computes || pair.of.mixed || key.function == kMetaLaunch) return;
    if (start_ns == 0) return results::lose(ExposureLost::no_clock, pair.of.calls);
    exposure_.call({pair.stream_id, pair.pool, start_ns, start_ns + ns, pair.of.key, pair.of.calls,
                    is_copy(key.bucket)});
  }

  static void begin_later(std::uint64_t& start_ns, std::uint64_t& ns, std::uint64_t at_ns) {
    const std::uint64_t later = start_ns < at_ns ? std::min(ns, at_ns - start_ns) : 0;
    start_ns += later;
    ns -= later;
  }

  Ended& ended(std::uint32_t comm) {
    for (Ended& e : ended_) {
      if (e.comm == comm) return e;
    }
    ended_.push_back({comm, 0, 0});
    if (ended_.failed()) return nobody_;
    return *(ended_.end() - 1);
  }

  Exposure& exposure_;
  DeviceClock* clock_ = nullptr;
  std::uint32_t scopes_left_ = 0;
  Pages<Pair*> waiting_;
  Pages<CUstream> standing_;
  Pages<std::uint32_t> standing_comms_;
  Pages<Ended> ended_;
  Ended nobody_{};
};

// Writes when devices computed: a line for each interval.
class Computed {
 public:
  // Writes lines for what became known since the last call. `clock`: of each pool's device.
  // `ending`: nothing more will become known. Makes `exposure` keep what is not written yet.
  void tell(Exposure& exposure, const DeviceClock* clock, std::uint64_t now_ns, bool ending);

 private:
  struct Device {
    Intervals lines;
    std::uint64_t written_ns = 0;
    bool ended = false;
  };
  void tell(Device& device, int ordinal, std::uint32_t pools, Exposure& exposure,
            std::uint64_t now_ns, bool ending);

  Device device_[kTimedDevices];
  Pages<Interval> found_;
};

// Contexts of one device are written together.
void Computed::tell(Exposure& exposure, const DeviceClock* clock, std::uint64_t now_ns,
                    bool ending) {
  for (int ordinal = 0; ordinal < static_cast<int>(kTimedDevices); ++ordinal) {
    std::uint32_t pools = 0;
    for (std::uint32_t i = 0; i < kPools; ++i) {
      if (clock[i].anchored_ns() != 0 && clock[i].device() == ordinal) pools |= 1U << i;
    }
    if (pools != 0) tell(device_[ordinal], ordinal, pools, exposure, now_ns, ending);
  }
}

void Computed::tell(Device& device, int ordinal, std::uint32_t pools, Exposure& exposure,
                    std::uint64_t now_ns, bool ending) {
  // How long to wait for work that was running when streams were last followed.
  constexpr std::uint64_t kPatienceNs = 400'000'000;
  const auto put = [&](const Interval& i, std::uint64_t idle_from_ns) {
    return results::add_busy(ordinal, i, idle_from_ns);
  };
  const Followed followed = when_followed();
  if (device.written_ns < followed.since_ns) {
    if (device.written_ns != 0) device.lines.add({device.written_ns, followed.since_ns, true}, put);
    device.written_ns = followed.since_ns;
  }
  const bool off = followed.until_ns <= now_ns;
  const bool late = ending || (off && now_ns - followed.until_ns >= kPatienceNs);
  const std::uint64_t until_ns =
      std::min(late ? now_ns : exposure.known_until(pools), followed.until_ns);
  if (until_ns > device.written_ns) {
    exposure.computed(pools, device.written_ns, until_ns, found_);
    for (const Interval& i : found_) device.lines.add(i, put);
    device.written_ns = until_ns;
    device.ended = false;
  }
  device.lines.known(device.written_ns, put);
  if (!device.ended && (ending || (off && device.written_ns >= followed.until_ns))) {
    device.lines.end(device.written_ns, put);
    device.ended = true;
  }
  exposure.running(device.written_ns);
}

struct Reader {
  Exposure exposure;
  Reading reading{exposure};
  Computed computed;
};

Reader* g_reader = nullptr;
constinit std::atomic<std::uint32_t> g_scopes_left{0};  // by the last reading

// A mark that is just being made is not visible yet, and may have an earlier time: then streams are
// known only as far as before.
void begin_reading(Exposure& exposure, std::uint64_t now) {
  if (streams::no_room()) exposure.no_room();
  exposure.begin_reading(streams::at_rest() ? now : 0);
}

std::size_t read_pool(Pool& pool, bool ending) {
  driver::stay_out_of_captures();
  if (on() && pool.wants_more() && !pool.make_more()) give_up(kRefused);
  const std::size_t left = g_reader->reading.read(pool);
  if (ending) g_reader->reading.lose_rest(pool);
  return left;
}

// Runs on own_thread, and reads what the devices have finished. `ending`: the rest is lost.
std::uint32_t read(bool ending) {
  constexpr std::uint32_t kSoonMs = 10;
  constexpr std::uint32_t kLaterMs = 200;
  if (g_reader == nullptr) g_reader = make_in_own_memory<Reader>();
  if (g_reader == nullptr) return kLaterMs;
  std::size_t left = 0;
  const std::uint64_t now = now_ns();
  begin_reading(g_reader->exposure, now);
  if (g_contexts.enter()) {
    for (Pool& pool : g_pools) {
      CUcontext context = pool.context();
      if (context != nullptr && driver::enter(context)) left += read_pool(pool, ending);
    }
    g_contexts.leave();
  }
  g_scopes_left.store(g_reader->reading.take_scopes_left(), std::memory_order_relaxed);
  g_reader->computed.tell(g_reader->exposure, g_clock, now, ending);
  g_reader->exposure.settle(ending, [](const Exposed& found) {
    found.known ? results::add(found) : results::lose(found.why, found.calls);
  });
  return left == 0 ? kLaterMs : kSoonMs;
}

void after_fork() {
  g_scopes_left = 0;
  for (DeviceClock& clock : g_clock) clock = {};
  g_reader = nullptr;
}

}  // namespace
}  // namespace reader

namespace by_events {
namespace {

struct Free {
  Pair* pair = nullptr;
  TimingLost why{};
};

using stream_gates::Use;

// Takes a pair for recording events in `stream`, and holds it during the use.
Free free_pair(CUstream stream, const Use& use) {
  if (!use) return {nullptr, TimingLost::no_context};
  if (g_contexts.closed()) return {nullptr, TimingLost::device};
  CUcontext context = driver::context_to_time_in(stream);
  Pool* pool = context == nullptr ? nullptr : pool_of(context);
  if (pool == nullptr) return {nullptr, TimingLost::no_context};
  const bool first = pool->events() == 0 && driver::is_in(context);
  if (first && !pool->make_more()) give_up(kRefused);
  Pair* pair = pool->take();
  if (pool->wants_more()) own_thread::wake();
  if (pair == nullptr) return {nullptr, TimingLost::no_pair};
  pair->stream = stream;
  pair->stream_id = streams::id_of(stream);
  pair->closings = use.closings();
  return {pair, {}};
}

bool record_or_give_back(Pair& pair, CUevent event) {
  if (driver::record(event, pair.stream)) return true;
  g_pools[pair.pool].give_back(pair);
  give_up(kRefused);
  return false;
}

std::uint32_t comm_of(const Calls& of) {
  const auto key = std::bit_cast<LedgerKey>(of.key);
  return key.function == kMetaLaunch || is_copy(key.bucket) ? 0 : key.comm;
}

TimedCall start(CUstream stream) {
  const Use use(stream);
  const Free free = free_pair(stream, use);
  if (free.pair == nullptr) return {nullptr, true, free.why};
  Pair& pair = *free.pair;
  pair.since_ns.store(now_ns(), std::memory_order_relaxed);
  if (!record_or_give_back(pair, pair.begin)) return {nullptr, true, TimingLost::device};
  // cppcheck-suppress returnDanglingLifetime; the pair is its pool's
  return {&pair};
}

// A capture may have begun in the stream since the pair was taken.
bool may_end(const Pair& pair, const Use& use) {
  return use && !g_contexts.closed() &&
         (use.closings() == pair.closings || driver::context_to_time_in(pair.stream) != nullptr);
}

void end_pair(Pair& pair) {
  const Use use(pair.stream);
  const bool may = may_end(pair, use);
  if (may && driver::record(pair.end, pair.stream)) {
    pair.to_read.store(true, std::memory_order_release);
    return;
  }
  if (pair.kind == Kind::call) lose(may ? TimingLost::device : TimingLost::no_context, pair.of);
  g_pools[pair.pool].give_back(pair);
  if (may) give_up(kRefused);
}

void drop(const TimedCall& timed) {
  auto& pair = *static_cast<Pair*>(timed.held);
  g_pools[pair.pool].give_back(pair);
}

void stop(const TimedCall& timed, const Calls& of, bool in_progress) {
  Pair& pair = *static_cast<Pair*>(timed.held);
  if (in_progress) {
    lose(TimingLost::in_progress, of);
    comm_order::enqueued(comm_of(of), pair.stream_id, InOrder::kUnknown);
    return drop(timed);
  }
  pair.kind = Kind::call;
  pair.of = of;
  pair.of.key = of_thread(of.key, t_thread.area->kind);
  pair.number = next_number();
  pair.order = comm_order::enqueued(comm_of(of), pair.stream_id, pair.number);
  end_pair(pair);
}

void pass_by(CUstream stream, const Calls& of) {
  const std::uint32_t comm = comm_of(of);
  if (comm == 0) return;
  std::uint64_t number = InOrder::kUnknown;
  const bool wanted = comm_order::on_several_streams(comm) && streams::on();
  const Use use(stream);
  const Free free = wanted ? free_pair(stream, use) : Free{};
  if (free.pair != nullptr) number = next_number();
  const InOrder order = comm_order::enqueued(comm, streams::id_of(stream), number);
  if (free.pair == nullptr) return;
  Pair& pair = *free.pair;
  pair.kind = Kind::tail;
  pair.number = number;
  pair.order = order;
  end_pair(pair);
}

// With one queue for all streams (Megatron's setting), timing events would serialize streams:
// NCCL's kernels and the program's would no longer overlap.
const char* disturbs() {
  const char* queues = environment_value("CUDA_DEVICE_MAX_CONNECTIONS");
  if (queues == nullptr || std::string_view(queues) != "1") return nullptr;
  return "with CUDA_DEVICE_MAX_CONNECTIONS=1 timing events would keep communication from "
         "overlapping";
}

void after_fork() {
  stream_gates::after_fork();
  for (Pool& pool : g_pools) pool.forget();
  new (&g_contexts) Gate;
  streams::after_fork();
  comm_order::after_fork();
  reader::after_fork();
}

}  // namespace
}  // namespace by_events

streams::Marked streams::put_into(CUstream stream, const Mark& mark) {
  const stream_gates::Use use(stream);
  const by_events::Free free = by_events::free_pair(stream, use);
  if (free.pair == nullptr) {
    const bool captures = use && free.why == TimingLost::no_context;
    return captures ? Marked::captures : Marked::lost;
  }
  Pair& pair = *free.pair;
  pair.kind = Kind::mark;
  pair.order = {};
  pair.mark = mark;
  pair.mark.device = pair.pool;
  pair.number = next_number();
  if (!by_events::record_or_give_back(pair, pair.begin)) return Marked::lost;
  pair.mark.made_ns = now_ns();
  pair.to_read.store(true, std::memory_order_release);
  return Marked::made;
}

extern const Mode events_mode;
constinit const Mode events_mode{
    .in_streams = true,
    .switches = true,
    .disturbs = by_events::disturbs,
    .read = reader::read,
    .set_window =
        [](bool open) {
          if (open) streams::begin_epoch();
        },
    .start = by_events::start,
    .stop = by_events::stop,
    .drop = by_events::drop,
    .pass_by = by_events::pass_by,
    .after_fork = by_events::after_fork,
};

Pair* begin_scope(CUstream stream) {
  if (!on() || &mode() != &events_mode) return nullptr;
  const KeepErrno keep_errno;
  auto* pair = static_cast<Pair*>(start(stream, kNoNumber).held);
  // A scope is not a call: what streams compute need not be kept for it.
  if (pair != nullptr) pair->since_ns.store(0, std::memory_order_relaxed);
  return pair;
}

void end_scope(Pair& pair, LedgerKey::Words key) {
  const KeepErrno keep_errno;
  pair.kind = Kind::scope;
  pair.of = {key, 1, 0, 0, 0, 0};
  pair.order = {};
  pair.number = next_number();
  by_events::end_pair(pair);
}

bool read_scopes(std::uint32_t timeout_ms) {
  if (&mode() != &events_mode) return true;
  const std::uint64_t until_ns = now_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  std::atomic<std::uint32_t> nobody{0};
  for (;;) {
    own_thread::read_now(timeout_ms);
    if (reader::g_scopes_left.load(std::memory_order_relaxed) == 0) return true;
    if (now_ns() >= until_ns) return false;
    futex_wait(nobody, 0, 1);
  }
}

}  // namespace tprof::device
