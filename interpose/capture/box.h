// Copies of boxes, whose extent counts elements where a CUDA array takes part and bytes where none
// does (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/driver/copy_args.h"

namespace tprof {

// Returns the bytes of a box; one side or both may be an array (else null). 0: the array's format
// does not tell, and the coverage notes it.
std::size_t box_bytes(const cudaExtent& extent, const void* dst_array, const void* src_array);

// These read the parameters of cudaMemcpy3D and cudaMemcpy3DPeer.
CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync);
CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync);

}  // namespace tprof
