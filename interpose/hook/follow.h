// The steps that followed calls report to device/busy.h, as the rows of the API tables name them.
// The runtime's functions and the driver's share them.
#pragma once

#include <cuda_runtime_api.h>

#include "interpose/device/busy.h"
#include "interpose/device/contexts.h"
#include "interpose/device/waits.h"
#include "interpose/hook/wrapper.h"
#include "interpose/real/driver_events.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/graphs.h"
#include "interpose/session/config.h"

namespace tprof::hook {

namespace busy = timing::busy;

// True if calls on the stream are executed now: a captured call is not.
inline bool is_now(cudaStream_t stream) {
  return busy::on() && graphs::captured_into(stream) == nullptr;
}

struct Launches {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    const bool now = is_now(stream);
    if (now) busy::launches(stream);
    const auto result = real();
    if (now) busy::launched(stream);
    return result;
  }
};
struct Records {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    const auto result = real();
    if (is_now(stream)) busy::recorded(stream);
    return result;
  }
};
struct StreamWaits {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    if (is_now(stream)) busy::waits(stream);
    if (!g_extras.captures.load(std::memory_order_relaxed)) return real();
    const stream_gates::Closed closed(stream);  // it may join a capture
    return real();
  }
};
struct HostWaits {
  template <typename F>
  auto around(F&& real) const {
    if (busy::on()) busy::host_waits();
    const std::uint64_t from = now_ns();
    const auto result = real();
    const std::uint64_t took = now_ns() - from;
    if (took >= timing::kShortestWaitNs) timing::add_wait(took);
    return result;
  }
};
struct StreamGoes {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    busy::destroying(stream);
    const stream_gates::Closed closed(stream);
    return real();
  }
};

// These are followed whether or not calls are timed now: events that were made stay.
struct ContextGoes {
  int device;  // -1: only `context`
  CUcontext context;
  static constexpr bool kEnds = true;
  template <typename F>
  auto around(F&& real) const {
    timing::ContextsGo contexts(device, context, true);
    const auto result = real();
    if (static_cast<int>(result) == 0) contexts.gone();
    return result;
  }
};
// A primary context goes when nobody has it any more.
struct ContextMayGo {
  int device;
  static constexpr bool kEnds = true;
  template <typename F>
  auto around(F&& real) const {
    timing::ContextsGo contexts(device, nullptr, false);
    const auto result = real();
    if (static_cast<int>(result) == 0 && !event_driver::has_primary_context(device)) {
      contexts.gone();
    }
    return result;
  }
};
template <typename Step>
inline constexpr bool kEndsContexts = requires {
  Step::kEnds;
};

}  // namespace tprof::hook

// The body of a wrapper, behind TPROF_REAL (budget while timing is off: 3 ns).
#define TPROF_FOLLOWED(stream_meant, arguments, step)                             \
  {                                                                               \
    using namespace tprof::hook;                                                  \
    [[maybe_unused]] constexpr auto meant = tprof::stream_meant;                  \
    if ((!tprof::timing::on() && !kEndsContexts<decltype(TPROF_UNPAREN step)>) || \
        !tprof::t_thread.at_rest()) [[likely]] {                                  \
      if (tprof::opt_in::events()) tprof::timing::busy::unseen();                 \
      return real_address arguments;                                              \
    }                                                                             \
    const tprof::DepthGuard guard(tprof::t_thread);                               \
    return (TPROF_UNPAREN step).around([&] { return real arguments; });           \
  }
