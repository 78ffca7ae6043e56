// Timing events, by the driver: its answers never touch the runtime's last error, and its handles
// are the runtime's.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace tprof::event_driver {

// The context in which a call on `stream` would be timed now. Null: there is none, the driver does
// not tell, or no event may be recorded there since the stream captures (or is the legacy stream
// while another one does: then the driver answers with an error).
CUcontext context_to_time_in(CUstream stream);

// Whether `context` is the calling thread's.
bool is_in(CUcontext context);
// Makes `context` the calling thread's. False: it is gone.
bool enter(CUcontext context);
// The calling thread's questions disturb no capture of another thread.
void stay_out_of_captures();

// Whether all that was put into the stream is done. No capture is disturbed by the question, and
// a stream that captures is not empty. False also where the driver does not say.
bool is_empty(CUstream stream);

bool make(CUevent& event);  // in the calling thread's context
bool record(CUevent event, CUstream stream);

enum class Reached : std::uint8_t { yes, not_yet, failed };
Reached reached(CUevent event);
// From one event to another, both reached; less than 0 where `to` came first. The driver says
// milliseconds in a float, to half a microsecond at best: of 8 s it knows no more than one.
bool elapsed(CUevent from, CUevent to, double& ns);

// A stream of our own, that waits for nobody's work; and which device the context is of.
bool make(CUstream& stream);
bool device(int& ordinal);

}  // namespace tprof::event_driver
