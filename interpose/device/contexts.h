// Handles the program's destruction of contexts (cudaDeviceReset and the like): our events go with
// them, and calls are not timed any more. No training program goes on after that.
#pragma once

#include <cuda.h>

#include "interpose/base/not_copied.h"

namespace tprof::device {

// Held around such a call. Meanwhile no thread of ours uses events, and no thread of the program
// puts a mark anywhere.
class [[nodiscard]] ContextsGo : NotCopied {
 public:
  // One context, or all of a device (-1: of the thread's current one). `surely`: they are destroyed
  // unless the call is refused, so finished calls are read first.
  ContextsGo(int device, CUcontext context, bool surely);
  ~ContextsGo();

  // They are gone, with the times not yet read.
  void gone();

 private:
  bool has_events_ = false;
  bool gone_ = false;
};

}  // namespace tprof::device
