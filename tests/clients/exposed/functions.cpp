// Other functions than the usual that launch kernels and wait for events.
#include <cuda.h>
#include <dlfcn.h>

#include "job.h"

Shapes functions() {
  return {
      // Uses the other two ways to launch a kernel.
      {"other_launches", each([](Job& j) {
         const auto* body = reinterpret_cast<const void*>(&kernel_body);
         j.order(j.compute, j.comm);
         j.gather(j.comm, 4000);
         cudaLaunchConfig_t config{};
         config.gridDim = dim3{1500, 1, 1};
         config.blockDim = dim3{1, 1, 1};
         config.stream = j.compute;
         OK(cudaLaunchKernelExC(&config, body, nullptr));
         OK(cudaLaunchCooperativeKernel(body, dim3{1500, 1, 1}, dim3{1, 1, 1}, nullptr, 0,
                                        j.compute));
         j.order(j.comm, j.compute);
         OK(cudaLaunchKernelExC(&config, body, nullptr));
       })},
      // Launches kernels through the driver, as run-time compilers do.
      {"driver_launches",
       [](Job& j, int steps) {
         using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, unsigned, CUstream, void**, void**);
         using LaunchEx = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
         void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
         const auto launch = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
         const auto launch_ex = reinterpret_cast<LaunchEx>(dlsym(driver, "cuLaunchKernelEx"));
         for (int i = 0; i < steps; ++i) {
           j.order(j.compute, j.comm);
           j.gather(j.comm, 4000);
           OK(launch(nullptr, 1500, 1, 1, 1, 1, 1, 0, j.compute, nullptr, nullptr));
           CUlaunchConfig config{};
           config.gridDimX = 1500;
           config.gridDimY = config.gridDimZ = 1;
           config.hStream = j.compute;
           OK(launch_ex(&config, nullptr, nullptr, nullptr));
           j.order(j.comm, j.compute);
           OK(launch(nullptr, 500, 1, 1, 1, 1, 1, 0, j.compute, nullptr, nullptr));
           j.end_step();
         }
       }},
      // Events are recorded and waited for through the driver's functions.
      {"driver_waits", each([](Job& j) {
         void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
         const auto record =
             reinterpret_cast<CUresult (*)(CUevent, CUstream)>(dlsym(driver, "cuEventRecord"));
         const auto wait = reinterpret_cast<CUresult (*)(CUstream, CUevent, unsigned)>(
             dlsym(driver, "cuStreamWaitEvent"));
         for (int layer = 0; layer < 3; ++layer) {
           cudaEvent_t computed = j.events[0], gathered = j.events[1];
           OK(record(computed, j.compute));
           OK(wait(j.comm, computed, 0));
           j.gather(j.comm, 3000);
           OK(record(gathered, j.comm));
           j.kernels(j.compute, 2, 700);
           OK(wait(j.compute, gathered, 0));
           j.kernels(j.compute, 2, 500);
         }
       })},
  };
}
