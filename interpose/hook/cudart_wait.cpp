// The wrappers of what a program waits with, generated from api/cudart.h. Without
// TPROF_TIMING=events they pass every call straight through (budget: 3 ns).
#include "interpose/hook/wrapper.h"
#include "interpose/timing/waits.h"

namespace tprof::hook {
namespace {

namespace waits = timing::waits;

struct Records {
  cudaEvent_t event;
  cudaStream_t stream;
  template <typename F>
  cudaError_t around(F&& real) const {
    const cudaError_t result = real();
    if (result == cudaSuccess) waits::recorded(event, stream);
    return result;
  }
};
struct StreamWaits {
  cudaStream_t stream;
  cudaEvent_t event;
  template <typename F>
  cudaError_t around(F&& real) const {
    const TimedCall timed = waits::start(stream, event);
    const cudaError_t result = real();
    waits::stop(timed, result == cudaSuccess);
    return result;
  }
};
struct ThreadWaits {
  waits::Behind behind;
  template <typename F>
  cudaError_t around(F&& real) const {
    const std::uint64_t start_ns = now_ns();
    const cudaError_t result = real();
    waits::waited(behind, start_ns);
    return result;
  }
};
struct ThreadWaitsForDevice {
  template <typename F>
  cudaError_t around(F&& real) const {
    const std::uint64_t start_ns = now_ns();
    const cudaError_t result = real();
    waits::waited_for_device(start_ns);
    return result;
  }
};

}  // namespace
}  // namespace tprof::hook

#define WRAPPER(function, stream_meant, parameters, arguments, step)    \
  extern "C" cudaError_t function parameters;                           \
  TPROF_EXPORT cudaError_t function parameters {                        \
    using namespace tprof::hook;                                        \
    using Type = cudaError_t(*) parameters;                             \
    TPROF_REAL(function, Type, cudaErrorSharedObjectSymbolNotFound)     \
    if (!tprof::timing::on() || !tprof::t_thread.at_rest()) [[likely]]  \
      return real_address arguments;                                    \
    [[maybe_unused]] constexpr auto meant = tprof::stream_meant;        \
    return (TPROF_UNPAREN step).around([&] { return real arguments; }); \
  }

#define X(function, twin, since, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)      \
  WRAPPER(twin, per_thread, parameters, arguments, step)
TPROF_CUDART_WAIT(X)
#undef X
#define X(function, since, parameters, arguments, step) \
  WRAPPER(function, legacy, parameters, arguments, step)
TPROF_CUDART_WAIT_ONLY(X)
#undef X
