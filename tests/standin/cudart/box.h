// Three-dimensional copies.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/copy.h"

namespace standin {

Region box_region(const cudaMemcpy3DParms& p);

}  // namespace standin
