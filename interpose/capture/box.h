// Copies of boxes (cudaMemcpy3DParms in driver_types.h).
#pragma once

#include "interpose/driver/copy_args.h"

namespace tprof {

// Reads the parameters of cudaMemcpy3D. If a CUDA array takes part, the extent counts elements of a
// size that is not known here: the call counts as 0 bytes, and the coverage notes it.
CopyArgs box_copy(const cudaMemcpy3DParms* p, cudaStream_t stream, bool sync);

}  // namespace tprof
