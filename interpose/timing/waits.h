// What the program waits for: which call stands behind an event or a stream, through chains of
// waits, and how long a stream or a thread stood still for it.
//
// Nothing of it is asked of CUDA: it follows from the calls that the program makes. A handle that
// was not seen for long is forgotten, and then a wait for it is not measured.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/timing/exposure.h"
#include "interpose/timing/timing.h"

namespace tprof::timing::waits {

// The last timed call that was put into a stream, or stands behind it since it waits for others.
struct Behind {
  std::uint64_t call = 0;  // its number; 0: none
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;  // that has pairs for its device
  std::uint64_t through[Wait::kStreams] = {};
};

// A number that no other stream of the process has: a default stream is one for each device.
std::uint64_t id_of(cudaStream_t stream);

// In the order of the calls: a timed one was put into its stream, an event was recorded in one.
void called(cudaStream_t stream, const Behind& behind);
[[gnu::cold]] void recorded(cudaEvent_t event, cudaStream_t stream);

// Around cudaStreamWaitEvent.
[[gnu::cold]] TimedCall start(cudaStream_t stream, cudaEvent_t event);
[[gnu::cold]] void stop(const TimedCall& timed, bool ok);

// Around what a thread waits in, from `start_ns` until now.
[[gnu::cold]] Behind behind(cudaEvent_t event);
[[gnu::cold]] Behind behind(cudaStream_t stream);
[[gnu::cold]] void waited(const Behind& behind, std::uint64_t start_ns);
[[gnu::cold]] void waited_for_device(std::uint64_t start_ns);

}  // namespace tprof::timing::waits
