// The program destroys contexts, and with them our events there (cudaDeviceReset and its like).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/base/not_copied.h"

namespace tprof::device {

// Held around such a call. No thread of ours uses an event or a stream of these contexts meanwhile,
// and no other thread of the program puts a mark there.
class [[nodiscard]] ContextsGo : NotCopied {
 public:
  // The contexts of a device (-1: of the thread's own), or one. `surely`: they go, if the call is
  // not refused: what the device has finished is read before.
  ContextsGo(int device, CUcontext context, bool surely);
  ~ContextsGo();

  // They are gone. Calls of which the times were not read are lost. Later ones get new events, in
  // as many contexts as there are pools (pairs.h).
  void gone();

 private:
  int device_;
  CUcontext context_;
  std::uint32_t pools_ = 0;  // a bit for each
  std::uint32_t stuck_ = 0;  // of these, those that the reader is in: the driver does not answer
  std::uint32_t shut_ = 0;   // for ever
};

}  // namespace tprof::device
