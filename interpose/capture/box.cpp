#include "interpose/capture/box.h"

#include "interpose/format/coverage.h"
#include "interpose/session/coverage.h"
#include "interpose/session/session.h"

namespace tprof {

std::size_t box_bytes(const cudaExtent& extent, bool in_array) {
  if (!in_array) return extent.width * extent.height * extent.depth;
  coverage::note(session::mapping().head(), Note::uncounted, "cudaArray_t");
  return 0;
}

CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync) {
  if (p == nullptr) return {nullptr, nullptr, 0, cudaMemcpyDefault, stream, sync};
  return {.dst = p->dstArray == nullptr ? p->dstPtr.ptr : nullptr,
          .src = p->srcArray == nullptr ? p->srcPtr.ptr : nullptr,
          .bytes = box_bytes(p->extent, p->dstArray != nullptr || p->srcArray != nullptr),
          .kind = p->kind,
          .stream = stream,
          .sync = sync};
}

CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync) {
  std::size_t bytes = 0;
  if (p != nullptr) bytes = box_bytes(p->extent, p->dstArray != nullptr || p->srcArray != nullptr);
  return {nullptr, nullptr, bytes, cudaMemcpyDeviceToDevice, stream, sync};
}

}  // namespace tprof
