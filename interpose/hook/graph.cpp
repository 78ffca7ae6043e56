// The wrappers of stream captures and CUDA graphs, generated from api/cudart.h and api/cuda.h: each
// row names a step to report to record/graphs.h. The runtime and the driver have the same handles.
// With TPROF_DRIVER=1 the driver's calls count if they come from outside wrappers, as from a
// linked-in runtime.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "interpose/calls/open_call.h"
#include "interpose/hook/wrapper.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/graphs.h"

namespace tprof::hook {

// A step has hooks before the real call, after success and after refusal.
struct CaptureBegins {
  cudaStream_t stream;
  bool into_existing_graph;
  void after(Thread& t) const { graphs::capture_began(t, stream, into_existing_graph); }
};
struct CaptureEnds {
  cudaStream_t stream;
  void after(Thread& t) const { graphs::capture_ended(t, stream, true); }
  void refused(Thread& t) const { graphs::capture_ended(t, stream, false); }
};
struct Instantiates {
  const cudaGraphExec_t* executable;
  cudaGraph_t graph;
  unsigned long long flags;
  void after(Thread& t) const {
    graphs::instantiated(t, *executable, graph,
                         (flags & cudaGraphInstantiateFlagDeviceLaunch) != 0);
  }
};
// Returns the flags. In CUDA 11 the argument is an address or null, and no address is as small as a
// flag.
inline unsigned long long flags_in(const void* argument) {
  constexpr std::uintptr_t kFlags = 0xfff;
  const auto flags = reinterpret_cast<std::uintptr_t>(argument);
  return flags <= kFlags ? flags : 0;
}
struct Updates {
  cudaGraphExec_t executable;
  cudaGraph_t graph;
  void after(Thread& t) const { graphs::updated(t, executable, graph); }
};
// Reported before the real call: after it the handle may be in use again. Begins no session.
template <typename Handle>
struct Destroys {
  Handle handle;
};
template <typename Handle>
Destroys(Handle) -> Destroys<Handle>;  // clang deduces it for aggregates since version 17
struct LaunchesGraph {
  cudaGraphExec_t executable;
  cudaStream_t stream;
};

// The wrapper's body. `thread` returns the thread if the calls count, else null.
template <typename GetThread, typename GetStep, typename F>
auto graph_call(GetThread&& thread, GetStep&& step, F&& function) {
  using Step = decltype(step());
  const auto real = [&] {
    if constexpr (std::is_same_v<Step, CaptureBegins>) {
      g_switches.captures.store(true, std::memory_order_relaxed);
      const stream_gates::Closed closed(step().stream);
      // During a capture, an event in the legacy stream would be a dependency that invalidates it.
      const stream_gates::Closed legacy_closed(nullptr);
      return function();
    } else {
      return function();
    }
  };
  if constexpr (requires { Step::handle; }) {
    if (session::started() && thread() != nullptr) graphs::destroying(step().handle);
    return real();
  } else {
    Thread* t = thread();
    if (t == nullptr) return real();
    const Step call = step();
    if constexpr (requires { call.after(*t); }) {
      const auto result = real();
      if (accepted(result)) {
        call.after(*t);
      } else if constexpr (requires { call.refused(*t); }) {
        call.refused(*t);
      }
      return result;
    } else {
      return launch_call(*t, call.executable, call.stream, real);
    }
  }
}

}  // namespace tprof::hook

#define WRAPPER(stream_meant, function, kind, parameters, arguments, step)          \
  TPROF_##kind(cudaError_t, function, parameters,                                   \
               return tprof::hook::graph_call(tprof::recording_thread,              \
                                              TPROF_STEP(hook, stream_meant, step), \
                                              [&] { return real arguments; });)
TPROF_CUDART_GRAPH(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER

#define WRAPPER(stream_meant, function, name, until, parameters, arguments, step)                  \
  TPROF_ANY(CUresult, function, parameters,                                                        \
            return tprof::hook::graph_call(recording_driver, TPROF_STEP(hook, stream_meant, step), \
                                           [&] { return real arguments; });)
TPROF_CUDA_GRAPH(TPROF_ONE, TPROF_BOTH)
#undef WRAPPER
