#include "interpose/device/cupti_calls.h"

#include <algorithm>
#include <new>

#include "interpose/base/free_list.h"
#include "interpose/device/cupti_client.h"
#include "interpose/device/streams.h"
#include "interpose/record/thread.h"

namespace tprof::device::cupti_calls {
namespace {

constinit Call g_call[kPlaces]{};  // memory that nobody has touched costs nothing
constinit FreeList<Call> g_free{};
constinit std::atomic<std::uint32_t> g_made{0};
constinit std::atomic<std::uint64_t> g_number{0};

Call* take() {
  if (Call* call = g_free.take(g_call)) return call;
  if (made() == kPlaces) return nullptr;
  const std::uint32_t place = g_made.fetch_add(1, std::memory_order_acq_rel);
  return place < kPlaces ? &g_call[place] : nullptr;
}

}  // namespace

std::uint32_t made() {
  return std::min(g_made.load(std::memory_order_acquire), kPlaces);
}

Call& call(std::uint32_t place) {
  return g_call[place];
}

void give_back(Call& call) {
  call.whole.store(false, std::memory_order_relaxed);
  call.id.store(0, std::memory_order_release);
  g_free.give_back(g_call, call);
}

bool wanted() {
  // Includes calls that come before CUPTI is ready: those of threads that do not wait for it, and
  // those made after that wait timed out.
  const cupti::State state = cupti::state();
  return state != cupti::State::leaving && state != cupti::State::out;
}

TimedCall start(CUstream stream) {
  if (!wanted()) return {};
  if (cupti::state() == cupti::State::over) return {nullptr, true, TimingLost::unread};
  if (!cupti::recording()) return {nullptr, true, TimingLost::no_record};
  Call* call = take();
  if (call == nullptr) return {nullptr, true, TimingLost::no_pair};
  const auto place = static_cast<std::uint64_t>(call - g_call);
  const std::uint64_t id = ++call->uses << kPlaceBits | place;
  call->stream = stream;
  call->stream_id = streams::id_of(stream);
  call->number = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
  call->id.store(id, std::memory_order_release);
  if (cupti::push(id)) return {call};
  give_back(*call);
  return {nullptr, true, TimingLost::device};
}

bool stop(const TimedCall& timed, const Calls& of, bool in_progress, TimingLost& why) {
  cupti::pop();
  auto& call = *static_cast<Call*>(timed.held);
  const cupti::State state = cupti::state();
  if (in_progress || state != cupti::State::in) {
    why = in_progress                   ? TimingLost::in_progress
          : state == cupti::State::over ? TimingLost::unread
                                        : TimingLost::tool;
    give_back(call);
    return false;
  }
  call.of = of;
  call.of.key = of_thread(of.key, t_thread.area->kind);
  call.whole.store(true, std::memory_order_release);
  return true;
}

void drop(const TimedCall& timed) {
  cupti::pop();
  give_back(*static_cast<Call*>(timed.held));
}

}  // namespace tprof::device::cupti_calls
