// Copies of boxes (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/format/coverage.h"
#include "interpose/real/driver_copy_args.h"
#include "interpose/session/coverage.h"
#include "interpose/session/session.h"

namespace tprof {

// Reads the parameters of cudaMemcpy3D. If a CUDA array takes part, the extent counts elements of a
// size that is not known here: the call counts as 0 bytes, and the coverage notes it.
inline CopyArgs region_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync) {
  if (p == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  const bool in_array = p->dstArray != nullptr || p->srcArray != nullptr;
  if (in_array) coverage::note(session::mapping().head(), Note::uncounted, "cudaArray_t");
  return {.dst = p->dstArray == nullptr ? p->dstPtr.ptr : nullptr,
          .src = p->srcArray == nullptr ? p->srcPtr.ptr : nullptr,
          .bytes = in_array ? 0 : p->extent.width * p->extent.height * p->extent.depth,
          .kind = p->kind,
          .stream = stream,
          .sync = sync};
}

}  // namespace tprof
