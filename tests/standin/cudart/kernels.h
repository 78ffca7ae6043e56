// The few kernels that do compute.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace standin {

// `name` (mangled) of the kernel that `host` stands for; both live as long as the program.
void register_kernel(const void* host, const char* name);

// What a launch would do to memory; empty for the many kernels that compute nothing here.
std::function<cudaError_t()> kernel_body(const void* host, dim3 grid, void** arguments);

}  // namespace standin
