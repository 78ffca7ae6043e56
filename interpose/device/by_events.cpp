// TPROF_TIMING=events: a pair of events goes into the call's stream, one before the call and one
// after it. reader.cpp reads them.
#include <atomic>
#include <bit>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/device/mode.h"
#include "interpose/device/pairs.h"
#include "interpose/device/reader.h"
#include "interpose/device/streams.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver_events.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/thread.h"

namespace tprof::device {
namespace by_events {
namespace {

struct Free {
  Pair* pair = nullptr;
  TimingLost why{};
};

using stream_gates::Use;

// Takes a pair to record events in `stream` with, while it is used.
Free free_pair(CUstream stream, const Use& use) {
  if (!use) return {nullptr, TimingLost::no_context};
  CUcontext context = event_driver::context_to_time_in(stream);
  Pool* pool = context == nullptr ? nullptr : pool_of(context);
  if (pool == nullptr) return {nullptr, TimingLost::no_context};
  const bool first = pool->events() == 0 && event_driver::is_in(context);
  if (first && !pool->make_more()) give_up();
  Pair* pair = pool->take();
  if (pool->wants_more()) own_thread::wake();
  if (pair == nullptr) return {nullptr, TimingLost::no_pair};
  pair->stream = stream;
  pair->stream_id = streams::id_of(stream);
  pair->closings = use.closings();
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

TimedCall start(CUstream stream) {
  const Use use(stream);
  const Free free = free_pair(stream, use);
  if (free.pair == nullptr) return {nullptr, true, free.why};
  Pair& pair = *free.pair;
  pair.since_ns.store(now_ns(), std::memory_order_relaxed);
  if (!record_or_give_back(pair, pair.begin)) return {nullptr, true, TimingLost::device};
  pair.enqueued_ns = now_ns();  // what is enqueued after this comes later
  // cppcheck-suppress returnDanglingLifetime; the pair is its pool's
  return {&pair};
}

// A capture may have begun in the stream since the pair was taken.
bool may_end(const Pair& pair, const Use& use) {
  return use && (use.closings() == pair.closings ||
                 event_driver::context_to_time_in(pair.stream) != nullptr);
}

void end_pair(Pair& pair) {
  const Use use(pair.stream);
  const bool there = pair.end != nullptr;  // else it went with its context
  const bool may = there && may_end(pair, use);
  if (may && event_driver::record(pair.end, pair.stream)) {
    pair.to_read.store(true, std::memory_order_release);
    return;
  }
  if (pair.kind == Kind::call) {
    lose(there && !may ? TimingLost::no_context : TimingLost::device, pair.of);
  }
  g_pools[pair.pool].give_back(pair);
  if (may) give_up();
}

streams::Marked put_into(CUstream stream, const Mark& mark) {
  const Use use(stream);
  const Free free = free_pair(stream, use);
  if (free.pair == nullptr) {
    const bool captures = use && free.why == TimingLost::no_context;
    return captures ? streams::Marked::captures : streams::Marked::lost;
  }
  Pair& pair = *free.pair;
  pair.kind = Kind::mark;
  pair.order = {};
  pair.mark = mark;
  pair.mark.device = pair.pool;
  pair.number = next_number();
  if (!record_or_give_back(pair, pair.begin)) return streams::Marked::lost;
  pair.mark.made_ns = now_ns();
  pair.to_read.store(true, std::memory_order_release);
  return streams::Marked::made;
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
  pair.computes = of.computes;
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

// With one queue for the work of all streams (Megatron's setting), timing events would order what
// was not ordered: NCCL's kernels and the program's would no longer overlap.
const char* disturbs() {
  const char* queues = environment_value("CUDA_DEVICE_MAX_CONNECTIONS");
  if (queues == nullptr || std::string_view(queues) != "1") return nullptr;
  return "with CUDA_DEVICE_MAX_CONNECTIONS=1 timing events would keep communication from "
         "overlapping";
}

void after_fork() {
  stream_gates::after_fork();
  for (Pool& pool : g_pools) pool.forget();
  streams::after_fork();
  comm_order::after_fork();
  reader::after_fork();
}

}  // namespace
}  // namespace by_events

extern const Mode events_mode;
constinit const Mode events_mode{
    .in_streams = true,
    .switches = true,
    .disturbs = by_events::disturbs,
    .read = reader::read,
    .begins = [] { streams::begin(by_events::put_into); },
    .joins = streams::begin_epoch,
    .set_window = streams::set_window,
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
  // A scope is no call: nothing of what streams compute has to be kept for it.
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
    if (reader::scopes_left() == 0) return true;
    if (now_ns() >= until_ns) return false;
    futex_wait(nobody, 0, 1);
  }
}

}  // namespace tprof::device
