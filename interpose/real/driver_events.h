// Timing events, through the driver's API: its answers never touch the runtime's last error, and
// its handles are the runtime's.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tprof::event_driver {

// Returns the context in which a call on `stream` would be timed now. Null: there is none, the
// driver does not tell, or no event may be recorded there since the stream captures. If another
// stream captures, the driver answers for the legacy stream with an error, so that is null too.
CUcontext context_to_time_in(CUstream stream);

// True if `context` is the calling thread's.
bool is_in(CUcontext context);
// Makes `context` the calling thread's. False: it is gone.
bool enter(CUcontext context);
// From here on, the calling thread's queries disturb no capture of another thread.
void stay_out_of_captures();

// True if all that was put into the stream is done. The query disturbs no capture, and a stream
// that captures is not empty. False also if the driver does not say.
bool is_empty(CUstream stream);

bool make(CUevent& event);  // in the calling thread's context
bool record(CUevent event, CUstream stream);

// never: the driver has an error for an answer, which is that of work before it in the device.
enum class Reached : std::uint8_t { yes, not_yet, never };
Reached reached(CUevent event);
// Tells the time from one event to another, both reached. It is less than 0 if `to` came first. The
// driver says milliseconds in a float, to half a microsecond at best, and at 8 s to one.
bool elapsed(CUevent from, CUevent to, double& ns);

// Makes a stream of our own that waits for nobody's work; and tells which device the context is of.
bool make(CUstream& stream);
bool device(int& ordinal);
// False also if the driver does not say.
bool has_primary_context(int device);

// Switches profilers that watch the process (nsys --capture-range=cudaProfilerApi), in the primary
// contexts that the program has; none is made. This may take as long as a profiler wants.
void switch_profilers(bool on);

}  // namespace tprof::event_driver
