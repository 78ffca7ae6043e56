#include "interpose/timing/timing.h"

#include <bit>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/environment.h"
#include "interpose/base/hash.h"
#include "interpose/cupti/client.h"
#include "interpose/driver/events.h"
#include "interpose/session/session.h"
#include "interpose/thread/thread.h"
#include "interpose/timing/busy.h"
#include "interpose/timing/comm_order.h"
#include "interpose/timing/cupti_calls.h"
#include "interpose/timing/cupti_look.h"
#include "interpose/timing/own_thread.h"
#include "interpose/timing/pairs.h"
#include "interpose/timing/reader.h"
#include "interpose/timing/results.h"

namespace tprof::timing {
namespace {

std::atomic<Timer> g_by{Timer::host};  // host: nobody reads
std::atomic<std::uint32_t> g_every{0};
std::atomic<std::uint64_t> g_number{0};
std::atomic<bool> g_window{true};
std::atomic<bool> g_switched_off{false};  // by `tprof ctl`; calls that have begun are still read

}  // namespace

void lose(TimingLost why, const Calls& of) {
  if (std::bit_cast<LedgerKey>(of.key).function == kMetaLaunch) return;
  session::mapping().head().timing_lost[static_cast<std::size_t>(why)].fetch_add(
      of.calls, std::memory_order_relaxed);
}

void give_up() {
  if (!g_on.exchange(false)) return;
  complain(Trouble::timing, "calls are not timed any more: the CUDA driver refuses our events");
}

std::uint64_t next_number() {
  return g_number.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {

struct Free {
  Pair* pair = nullptr;
  TimingLost why{};
};

// Takes a pair to record events in `stream` with.
Free free_pair(CUstream stream) {
  CUcontext context = event_driver::context_to_time_in(stream);
  Pool* pool = context == nullptr ? nullptr : pool_of(context);
  if (pool == nullptr) return {nullptr, TimingLost::no_context};
  const bool first = pool->made() == 0 && event_driver::is_in(context);
  if (first && !pool->make_more(number_of(*pool))) give_up();
  Pair* pair = pool->take();
  if (pool->wants_more()) own_thread::wake();
  if (pair == nullptr) return {nullptr, TimingLost::no_pair};
  pair->stream = stream;
  pair->stream_id = busy::id_of(stream);
  return {pair, {}};
}

bool record_or_give_back(Pair& pair, CUevent event) {
  if (event_driver::record(event, pair.stream)) return true;
  g_pools[pair.pool].give_back(pair);
  give_up();
  return false;
}

std::uint32_t comm_of(const Calls& of) {
  const auto key = std::bit_cast<LedgerKey>(of.key);
  return key.function == kMetaLaunch || is_copy(key.bucket) ? 0 : key.comm;
}

}  // namespace

TimedCall begin_pair(CUstream stream) {
  const Free free = free_pair(stream);
  if (free.pair == nullptr) return {nullptr, true, free.why};
  Pair& pair = *free.pair;
  pair.since_ns.store(now_ns(), std::memory_order_relaxed);
  if (!record_or_give_back(pair, pair.begin)) return {nullptr, true, TimingLost::device};
  pair.enqueued_ns = now_ns();  // what is enqueued after this comes later
  // cppcheck-suppress returnDanglingLifetime; the pair is its pool's
  return {&pair};
}

bool end_pair(Pair& pair) {
  if (!record_or_give_back(pair, pair.end)) return false;
  pair.to_read.store(true, std::memory_order_release);
  return true;
}

Marked put_into(CUstream stream, const Mark& mark) {
  const Free free = free_pair(stream);
  if (free.pair == nullptr) {
    return free.why == TimingLost::no_context ? Marked::captures : Marked::lost;
  }
  Pair& pair = *free.pair;
  pair.kind = Kind::mark;
  pair.order = {};
  pair.mark = mark;
  pair.mark.device = pair.pool;
  pair.number = next_number();
  if (!record_or_give_back(pair, pair.begin)) return Marked::lost;
  pair.to_read.store(true, std::memory_order_release);
  return Marked::made;
}

TimedCall start(CUstream stream, std::uint64_t number) {
  if (!g_window.load(std::memory_order_relaxed)) return {};
  if (!by_events()) return cupti_calls::start(stream);
  const std::uint32_t every = g_every.load(std::memory_order_relaxed);
  if (number == kNoNumber) number = next_number();
  if (every > 1 && mix64(number) % every != 0) return {};
  return begin_pair(stream);
}

void stop(const TimedCall& timed, const Calls& of, bool in_progress) {
  if (timed.cupti != 0) return cupti_calls::stop(timed.cupti, of, in_progress);
  if (timed.pair == nullptr) {
    const bool asked_for =
        g_window.load(std::memory_order_relaxed) && (by_events() || cupti_calls::wanted());
    if (timed.lost && asked_for) lose(timed.why, of);
    return;
  }
  Pair& pair = *timed.pair;
  if (in_progress) {
    lose(TimingLost::in_progress, of);
    comm_order::enqueued(comm_of(of), pair.stream_id, InOrder::kUnknown);
    return drop(timed);
  }
  pair.kind = Kind::call;
  pair.of = of;
  pair.of.key = of_thread(of.key, t_thread.area->kind);
  pair.computes = of.computes;
  pair.number = next_number();
  pair.order = comm_order::enqueued(comm_of(of), pair.stream_id, pair.number);
  if (!end_pair(pair)) lose(TimingLost::device, of);
}

void pass_by(CUstream stream, const Calls& of) {
  const std::uint32_t comm = comm_of(of);
  if (comm == 0 || !by_events()) return;
  std::uint64_t number = InOrder::kUnknown;
  const bool wanted = comm_order::on_several_streams(comm) && busy::on();
  const Free free = wanted ? free_pair(stream) : Free{};
  if (free.pair != nullptr) number = next_number();
  const InOrder order = comm_order::enqueued(comm, busy::id_of(stream), number);
  if (free.pair == nullptr) return;
  Pair& pair = *free.pair;
  pair.kind = Kind::tail;
  pair.number = number;
  pair.order = order;
  end_pair(pair);
}

void drop(const TimedCall& timed) {
  if (timed.cupti != 0) return cupti_calls::drop(timed.cupti);
  if (timed.pair != nullptr) g_pools[timed.pair->pool].give_back(*timed.pair);
}

void set_window(bool open) {
  busy::set_window(open);
  if (g_window.exchange(open) != open) cupti_look::set_window(open);
}

bool by_events() {
  return g_by.load(std::memory_order_relaxed) == Timer::events;
}

void begin(const Timing& timing) {
  if (timing.by == Timer::host || !results::begin()) return;
  const bool cupti = timing.by == Timer::cupti;
  if (!own_thread::begin(cupti ? cupti_look::look : reader::look)) return;
  g_every.store(timing.every, std::memory_order_relaxed);
  g_by.store(timing.by, std::memory_order_relaxed);
  g_on.store(true, std::memory_order_relaxed);
}

Obeyed change(const Timing& timing) {
  const Timer now = g_by.load(std::memory_order_relaxed);
  if (timing.by == Timer::cupti || now == Timer::cupti) {
    return timing.by == now ? Obeyed::already : Obeyed::no_timer;
  }
  if (timing.by == Timer::host) {
    if (!g_on.exchange(false)) return Obeyed::already;
    g_switched_off.store(true, std::memory_order_relaxed);
    return Obeyed::done;
  }
  if (would_order()) return Obeyed::ordered;
  const bool new_share = g_every.exchange(timing.every) != timing.every;
  if (now == Timer::host) {
    busy::begin_epoch();
    begin(timing);
    return on() ? Obeyed::done : Obeyed::failed;
  }
  busy::begin_epoch();
  const bool was_on = g_on.exchange(true);
  g_switched_off.store(false, std::memory_order_relaxed);
  return was_on && !new_share ? Obeyed::already : Obeyed::done;
}

bool would_order() {
  const char* queues = environment_value("CUDA_DEVICE_MAX_CONNECTIONS");
  return queues != nullptr && std::string_view(queues) == "1";
}

void settle_in() {
  if (g_by.load(std::memory_order_relaxed) == Timer::cupti) cupti_look::wait_until_in();
}

void make_way() {
  constexpr std::uint32_t kPatienceMs = 200;
  if (!cupti::leave([] { own_thread::last_look(kPatienceMs); })) return;
  complain(Trouble::timing, "calls are not timed any more: the program uses CUPTI itself");
}

void end(std::uint32_t timeout_ms) {
  if (g_on.exchange(false) || g_switched_off.load(std::memory_order_relaxed)) {
    own_thread::last_look(timeout_ms);
  }
}

void go_on() {
  const bool asked_for = g_by.load(std::memory_order_relaxed) != Timer::host;
  g_on.store(asked_for && !g_switched_off.load(std::memory_order_relaxed),
             std::memory_order_relaxed);
}

void after_fork() {
  g_on.store(false, std::memory_order_relaxed);
  g_by.store(Timer::host, std::memory_order_relaxed);
  g_window.store(true, std::memory_order_relaxed);
  g_switched_off.store(false, std::memory_order_relaxed);
  for (Pool& pool : g_pools) pool.forget();
  busy::after_fork();
  comm_order::after_fork();
  reader::after_fork();
  cupti_look::after_fork();
}

}  // namespace tprof::timing
