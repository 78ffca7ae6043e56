// Copies of boxes, whose extent counts elements where a CUDA array takes part and bytes where none
// does (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/driver/copy_args.h"

namespace tprof {

// Bytes of a box of which one side or both may be an array (else null): 0 where the array's format
// does not tell, which then is in the coverage.
std::size_t box_bytes(const cudaExtent& extent, const void* dst_array, const void* src_array);

// How cudaMemcpy3D's and cudaMemcpy3DPeer's parameters read.
CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync);
CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync);

}  // namespace tprof
