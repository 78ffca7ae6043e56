// Copies of boxes (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/driver/copy_args.h"

namespace tprof {

// Returns the bytes of a box. 0: a CUDA array takes part, whose extent counts elements of a size
// that is not known here. The coverage notes it.
std::size_t box_bytes(const cudaExtent& extent, bool in_array);

// These read the parameters of cudaMemcpy3D and cudaMemcpy3DPeer.
CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync);
CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync);

}  // namespace tprof
