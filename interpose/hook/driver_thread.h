// What the wrappers of the driver's functions begin with.
#pragma once

#include "interpose/capture/thread.h"
#include "interpose/driver/function.h"
#include "interpose/session/opt_in.h"

namespace tprof {

// The current device of a thread that did not set it through a wrapper. The driver keeps it by
// thread, and its answers touch no error state.
inline void ask_device(Thread& t) {
  static constinit resolve::DriverFunction<int(int*)> query("cuCtxGetDevice");
  auto* ask = query.get();
  int device = 0;
  if (ask != nullptr && ask(&device) == 0) t.device = device;
}

// The thread where calls of the driver count.
inline Thread* driver_thread() {
  return opt_in::driver() ? recording_thread() : nullptr;
}
// The same, with its device: for what counts as a copy's.
inline Thread* recording_driver() {
  Thread* t = driver_thread();
  if (t != nullptr) ask_device(*t);
  return t;
}

}  // namespace tprof
