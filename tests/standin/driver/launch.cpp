// Kernel launches, as run-time compilers make them. The kernels compute nothing.
#include "driver/entry.h"
#include "engine/device.h"
#include "engine/model.h"

using namespace standin;

namespace {

CUresult launch(dim3 grid, CUstream stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    use_context(s.device);
    hold_up_launch();
    submit(s, {.takes = kernel_time(grid), .type = cudaGraphNodeTypeKernel});
    return device_error();
  });
}

}  // namespace

STANDIN_ENTRY(cuLaunchKernel,
              (CUfunction, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned,
               unsigned, CUstream stream, void**, void**),
              launch({x, y, z}, stream))
STANDIN_ENTRY(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction, void**, void**),
              launch({config->gridDimX, config->gridDimY, config->gridDimZ}, config->hStream))
