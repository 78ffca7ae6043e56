// The wrappers of launches and waits, generated from api/cudart.h and api/cuda.h: each row names a
// step to report to device/. Without TPROF_TIMING=events they only pass calls through. A runtime
// call and the driver call inside it are one.
#include <cuda_runtime_api.h>

#include "interpose/device/pairs.h"
#include "interpose/device/streams.h"
#include "interpose/device/timing.h"
#include "interpose/hook/wrapper.h"
#include "interpose/real/driver.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/graphs.h"
#include "interpose/session/config.h"

namespace tprof::hook {

namespace streams = device::streams;

// True if the stream executes calls, rather than capturing them.
inline bool is_now(cudaStream_t stream) {
  return streams::on() && graphs::captured_into(stream) == nullptr;
}

struct Launches {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    const bool now = is_now(stream);
    if (now) streams::launches(stream);
    const auto result = real();
    if (now) streams::launched(stream);
    return result;
  }
};
struct Records {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    const auto result = real();
    if (is_now(stream)) streams::recorded(stream);
    return result;
  }
};
struct StreamWaits {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    if (is_now(stream)) streams::waits(stream);
    if (!g_switches.captures.load(std::memory_order_relaxed)) return real();
    const stream_gates::Closed closed(stream);  // it may join a capture
    return real();
  }
};
struct HostWaits {
  template <typename F>
  auto around(F&& real) const {
    if (streams::on()) streams::host_waits();
    const std::uint64_t from = now_ns();
    const auto result = real();
    const std::uint64_t took = now_ns() - from;
    if (took >= device::kShortestWaitNs) device::add_wait(took);
    return result;
  }
};
struct StreamGoes {
  cudaStream_t stream;
  template <typename F>
  auto around(F&& real) const {
    streams::destroying(stream);
    const stream_gates::Closed closed(stream);
    return real();
  }
};

// Followed even while calls are not timed, since existing events stay.
struct ContextGoes {
  int device;  // -1: only `context`
  CUcontext context;
  bool surely = true;  // false: a release, of which the last destroys the primary context
  static constexpr bool kEnds = true;
  template <typename F>
  auto around(F&& real) const {
    device::ContextsGo contexts(device, context, surely);
    const auto result = real();
    if (static_cast<int>(result) == 0 && (surely || !driver::has_primary_context(device))) {
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

// The body of a wrapper, after TPROF_REAL (budget while timing is off: 3 ns).
#define TPROF_FOLLOWED(stream_meant, arguments, step)                             \
  {                                                                               \
    using namespace tprof::hook;                                                  \
    [[maybe_unused]] constexpr auto meant = tprof::stream_meant;                  \
    if ((!tprof::device::on() && !kEndsContexts<decltype(TPROF_UNPAREN step)>) || \
        !tprof::t_thread.at_rest()) [[likely]] {                                  \
      if (tprof::opt_in::events()) tprof::device::streams::unseen();              \
      return real_address arguments;                                              \
    }                                                                             \
    const tprof::DepthGuard guard(tprof::t_thread);                               \
    return (TPROF_UNPAREN step).around([&] { return real arguments; });           \
  }

#define WRAPPER(stream_meant, function, parameters, arguments, step) \
  TPROF_TYPED(cudaError_t, function, parameters, TPROF_FOLLOWED(stream_meant, arguments, step))
TPROF_CUDART_FOLLOW(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER

#define WRAPPER(stream_meant, function, name, until, parameters, arguments, step) \
  TPROF_ANY(CUresult, function, parameters, TPROF_FOLLOWED(stream_meant, arguments, step))
TPROF_CUDA_FOLLOW(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
