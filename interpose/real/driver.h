// Asks the CUDA driver about devices, memory, streams and timing events, which never changes the
// runtime's last error. Its handles are the runtime's.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof::driver {

// Gets the device of the calling thread's context. Returns false if the driver does not answer; the
// other function then returns `otherwise`.
bool device(int& ordinal);
int current_device(int otherwise);

// The direction of a copy between two addresses, and the kind of host memory, if known.
struct Direction {
  Bucket bucket;
  HostMemory host = HostMemory::unknown;
};
// A null address is the symbol of cudaMemcpyToSymbol/FromSymbol, which is on the device.
Direction direction(const void* dst, const void* src);

// Returns what the driver knows about a host address of a copy: `pageable` if it does not know the
// memory, `unknown` if it does not answer (no context yet, or a fork).
HostMemory host_memory(const void* address);

// Returns the device of memory known to CUDA, or `otherwise` if the driver does not answer.
int device_of(const void* address, int otherwise);

// Returns the context in which a call on `stream` would be timed now. Null: there is none, the
// driver does not answer, or the stream captures, so that no event may be recorded. For the legacy
// stream also null if another stream captures, since the driver then returns an error.
CUcontext context_to_time_in(CUstream stream);

// True if `context` is the calling thread's current one.
bool is_in(CUcontext context);
// Makes `context` the calling thread's current one. Returns false if it is gone.
bool enter(CUcontext context);
// From here on, the calling thread's queries do not disturb other threads' captures.
void stay_out_of_captures();

// True if all work in the stream is done; false if it captures, or if the driver does not answer.
// Does not disturb captures.
bool is_empty(CUstream stream);

bool make(CUevent& event);  // in the calling thread's context
bool record(CUevent event, CUstream stream);

// never: the driver returns an error of earlier work on the device.
enum class Reached : std::uint8_t { yes, not_yet, never };
Reached reached(CUevent event);
// Gets the time between two reached events; negative if `to` came first. The driver returns
// milliseconds in a float, with a resolution of half a microsecond at best, and of one at 8 s.
bool elapsed(CUevent from, CUevent to, double& ns);

// Makes our own non-blocking stream.
bool make(CUstream& stream);
// Also false if the driver does not answer.
bool has_primary_context(int device);

// Switches profilers that watch the process (nsys --capture-range=cudaProfilerApi), in the
// program's existing primary contexts. Takes as long as a profiler needs.
void switch_profilers(bool on);

}  // namespace tprof::driver
