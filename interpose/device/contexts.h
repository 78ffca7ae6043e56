// Handles the program's destruction of contexts (cudaDeviceReset and the like), and of our events
// with them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/base/not_copied.h"

namespace tprof::device {

// Held around such a call. Meanwhile no thread of ours uses events or streams of these contexts,
// and no other thread of the program puts a mark there.
class [[nodiscard]] ContextsGo : NotCopied {
 public:
  // One context, or all of a device (-1: of the thread's current one). `surely`: they are destroyed
  // unless the call is refused, so finished calls are read first.
  ContextsGo(int device, CUcontext context, bool surely);
  ~ContextsGo();

  // They are gone. Times not yet read are lost. Later calls get new events, in as many contexts as
  // there are pools (pairs.h).
  void gone();

 private:
  int device_;
  CUcontext context_;
  std::uint32_t pools_ = 0;  // a bit for each
  std::uint32_t stuck_ = 0;  // pools that the reader is still in: the driver does not answer
  std::uint32_t shut_ = 0;   // for ever
};

}  // namespace tprof::device
