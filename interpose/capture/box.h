// Copies of boxes, whose extent counts elements where a CUDA array takes part and bytes where none
// does (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/capture/copy_args.h"

namespace tprof {

// Bytes of one element of `array` (a cudaArray_t, which is a CUarray), by the driver, whose answers
// never touch the runtime's last error. 0 where its format does not tell: then it is in the
// coverage, and the copy counts as a call of 0 bytes.
std::size_t array_element_bytes(const void* array);

// Bytes of a box of which one side or both may be an array (else null).
std::size_t box_bytes(const cudaExtent& extent, const void* dst_array, const void* src_array);

// How cudaMemcpy3D's and cudaMemcpy3DPeer's parameters read.
CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync);
CopyArgs box_copy(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool sync);

}  // namespace tprof
