// The current device of a thread, and which devices have a context.
#pragma once

#include <cuda_runtime_api.h>

namespace standin {

int current_device();
cudaError_t set_current_device(int device);

// A context comes into being with the first call that needs one, as on the real thing.
void use_context(int device);
bool has_context(int device);

}  // namespace standin
