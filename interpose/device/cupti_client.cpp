#include "interpose/device/cupti_client.h"

#include <atomic>

#include "interpose/base/background_thread.h"
#include "interpose/base/lock.h"
#include "interpose/device/cupti_buffers.h"
#include "interpose/device/cupti_library.h"

namespace tprof::cupti {
namespace {

constinit std::atomic<State> g_state{State::before};
constinit std::atomic<bool> g_recording{false};
constinit bool g_forked = false;  // from a process that was CUPTI's client
constinit Library g_cupti{};
constinit Lock g_changing{LockOrder::cupti};
void* g_subscriber = nullptr;
std::atomic<std::uint32_t> g_left{0};  // futex; 1: we are out, after somebody was leaving

// An `external` record comes only with a record of a runtime or driver call: NCCL calls the driver,
// PyTorch the runtime.
constexpr ActivityKind kKinds[] = {ActivityKind::external,    ActivityKind::runtime,
                                   ActivityKind::driver,      ActivityKind::memcpy,
                                   ActivityKind::peer_memcpy, ActivityKind::kernel};

void nothing(void*, std::uint32_t, std::uint32_t, const void*) {}

bool in() {
  return g_state.load(std::memory_order_acquire) == State::in;
}

// Returns what keeps us from CUPTI, or null.
const char* subscribe() {
  if (!buffers::begin()) return "no memory";
  void* callback = reinterpret_cast<void*>(nothing);
  const Result result = g_cupti.subscribe(&g_subscriber, callback, nullptr);
  if (result == kTaken) return "another tool is using CUPTI";
  if (result != kSuccess) return "CUPTI refuses";
  if (g_cupti.register_callbacks(buffers::requested, buffers::completed) != kSuccess) {
    g_cupti.unsubscribe(g_subscriber);
    return "CUPTI refuses our buffers";
  }
  return nullptr;
}

}  // namespace

State state() {
  return g_state.load(std::memory_order_acquire);
}

bool recording() {
  return g_recording.load(std::memory_order_acquire);
}

const char* enter() {
  if (state() == State::before && !load(g_cupti)) {
    return "there is no libcupti of the process's CUDA";
  }
  const LockGuard guard(g_changing);
  if (state() != State::before) {
    return g_forked ? "the process was forked from one that uses CUPTI"
                    : "the program has asked CUPTI for its own records";
  }
  g_state.store(State::entering, std::memory_order_relaxed);
  const char* why_not = subscribe();
  g_state.store(why_not == nullptr ? State::in : State::out, std::memory_order_release);
  return why_not;
}

bool start_records() {
  const LockGuard guard(g_changing);
  if (!in()) return false;
  for (const ActivityKind kind : kKinds) {
    // A CUPTI that has no kind for copies between devices has them among the other copies.
    if (g_cupti.enable(kind) != kSuccess && kind != ActivityKind::peer_memcpy) {
      for (const ActivityKind other : kKinds) g_cupti.disable(other);
      return false;
    }
  }
  g_recording.store(true, std::memory_order_release);
  return true;
}

void stop_records() {
  const LockGuard guard(g_changing);
  g_recording.store(false, std::memory_order_release);
  if (!in()) return;
  for (const ActivityKind kind : kKinds) g_cupti.disable(kind);
}

void flush() {
  const State s = state();
  if (s == State::in || s == State::leaving) g_cupti.flush(0);
}

Record* next(std::uint8_t* buffer, std::size_t valid, Record* before) {
  const State s = state();
  if (s != State::in && s != State::leaving) return nullptr;
  Record* record = before;
  return g_cupti.next(buffer, valid, &record) == kSuccess ? record : nullptr;
}

bool push(std::uint64_t id) {
  return in() && g_cupti.push(kOurs, id) == kSuccess;
}

void pop() {
  g_cupti.pop(kOurs, nullptr);
}

bool time(std::uint64_t& ns) {
  return in() && g_cupti.time(&ns) == kSuccess;
}

void close() {
  State expected = State::in;
  g_recording.store(false, std::memory_order_release);
  g_state.compare_exchange_strong(expected, State::over);
}

bool leave(void (*last_read)()) {
  const State now = state();
  if (now == State::entering || now == State::out || now == State::over) return false;
  const HeldSignals held_signals;
  // Whoever has the lock may be waiting, in CUPTI, for a lock of the loader's that our caller
  // holds.
  constexpr std::uint32_t kPatienceMs = 1000;
  if (!g_changing.lock_until(now_ns() + std::uint64_t{kPatienceMs} * 1'000'000)) return false;
  const State before = state();
  if (before == State::in) {
    g_recording.store(false, std::memory_order_release);
    g_state.store(State::leaving, std::memory_order_release);
    for (const ActivityKind kind : kKinds) g_cupti.disable(kind);
  } else if (before == State::before) {
    g_state.store(State::out, std::memory_order_release);
  }
  g_changing.unlock();
  if (before == State::leaving) wait_until(g_left, 1, kPatienceMs);
  if (before != State::in) return false;
  // This comes after the unlock: the thread that looks may be about to take the lock. From here on
  // nobody else changes the state.
  last_read();
  g_state.store(State::out, std::memory_order_release);
  g_cupti.unsubscribe(g_subscriber);
  g_left.store(1, std::memory_order_release);
  futex_wake(g_left);
  return true;
}

void after_fork() {
  if (state() == State::before) return;
  g_forked = state() != State::out;
  g_recording.store(false, std::memory_order_relaxed);
  g_state.store(State::out, std::memory_order_relaxed);
  g_left.store(1, std::memory_order_relaxed);
}

}  // namespace tprof::cupti
