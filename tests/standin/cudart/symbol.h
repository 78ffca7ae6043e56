// Variables of device code, which only their names reach.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/copy.h"

namespace standin {

// The side of `region` that is a symbol becomes what lies at `offset` in the symbol's memory.
cudaError_t symbol_region(Region* region, size_t offset, bool to_symbol);

}  // namespace standin
