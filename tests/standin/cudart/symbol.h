// Variables of device code, which are reached by their symbols only.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/copy.h"

namespace standin {

// Replaces the symbol on one side of `region` by the address at `offset` in the symbol's memory.
cudaError_t symbol_region(Region* region, size_t offset, bool to_symbol);

}  // namespace standin
