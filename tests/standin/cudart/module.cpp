// Kernels and variables of loaded modules. Kernels compute (next to) nothing; variables have
// memory.
#include <cstring>
#include <map>
#include <mutex>

#include "cudart/entry.h"
#include "cudart/kernels.h"
#include "cudart/symbol.h"
#include "engine/copy.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/model.h"

using namespace standin;

namespace {

struct Variable {
  size_t size;
  void* memory = nullptr;  // made at first use
};

struct Modules {
  std::mutex mutex;
  std::map<const void*, Variable> variables;
};
Modules& modules() {
  static auto& m = *new Modules;
  return m;
}

cudaError_t find_symbol(const void* symbol, void** address, size_t* size) {
  const std::lock_guard lock(modules().mutex);
  auto found = modules().variables.find(symbol);
  if (found == modules().variables.end()) return cudaErrorInvalidSymbol;
  Variable& v = found->second;
  if (!v.memory) v.memory = allocate(v.size, cudaMemoryTypeDevice, current_device());
  *address = v.memory;
  *size = v.size;
  return cudaSuccess;
}

cudaError_t copy_symbol(const char* function, void* dst, const void* src, size_t count,
                        size_t offset, bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream,
                        Wait wait) {
  Region region{dst, src, count};
  if (const cudaError_t error = symbol_region(&region, offset, to_symbol)) return error;
  return copy(function, region, kind, stream, wait);
}

cudaError_t launch(const void* kernel, dim3 grid, void** arguments, cudaStream_t stream) {
  return with_stream(stream, [&](CUstream_st& s) {
    use_context(s.device);
    const auto body = kernel_body(kernel, grid, arguments);
    const auto time = kernel_time(grid);
    hold_up_launch();
    // Outside of a graph nobody can see work that does nothing in no time.
    if (!body && time.count() == 0 && !s.capture) return device_error();
    submit(s, {.run = body, .takes = time, .type = cudaGraphNodeTypeKernel});
    return device_error();
  });
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local Configuration configuration;

}  // namespace

namespace standin {

cudaError_t symbol_region(Region* region, size_t offset, bool to_symbol) {
  void* address = nullptr;
  size_t size = 0;
  const cudaError_t error = find_symbol(to_symbol ? region->dst : region->src, &address, &size);
  if (error) return error;
  if (offset + region->width > size) return cudaErrorInvalidValue;
  char* inside = static_cast<char*>(address) + offset;
  if (to_symbol) {
    region->dst = inside;
  } else {
    region->src = inside;
  }
  return cudaSuccess;
}

}  // namespace standin

extern "C" {

// nvcc's generated code calls these (crt/host_runtime.h); no public header declares them.
void** __cudaRegisterFatBinary(void* fat_binary);
void __cudaRegisterFatBinaryEnd(void** module);
void __cudaUnregisterFatBinary(void** module);
void __cudaRegisterFunction(void** module, const char* host, char* device, const char* name,
                            int limit, uint3* tid, uint3* bid, dim3* block, dim3* grid, int* warp);
void __cudaRegisterVar(void** module, char* host, char* device, const char* name, int external,
                       size_t size, int constant, int global);
char __cudaInitModule(void** module);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream);

void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  register_kernel(host, name);
}
void __cudaRegisterVar(void**, char* host, char*, const char*, int, size_t size, int, int) {
  const std::lock_guard lock(modules().mutex);
  modules().variables[host] = {size};
}
char __cudaInitModule(void**) {
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  std::memcpy(kernel, &host, sizeof host);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3, void** arguments, size_t,
                               cudaStream_t stream) {
  return launch(kernel, grid, arguments, stream);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3, void** arguments, size_t,
                             cudaStream_t stream) {
  return launch(kernel, grid, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  return launch(kernel, config->gridDim, arguments, config->stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3, void** arguments,
                                        size_t, cudaStream_t stream) {
  return launch(kernel, grid, arguments, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = 48 << 10;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared, 0);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  size_t size = 0;
  return done(find_symbol(symbol, address, &size));
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  return done(copy_symbol("cudaMemcpyToSymbol", const_cast<void*>(symbol), src, count, offset, true,
                          kind, nullptr, Wait::kYes));
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return done(copy_symbol("cudaMemcpyToSymbolAsync", const_cast<void*>(symbol), src, count, offset,
                          true, kind, stream, Wait::kNo));
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  return done(copy_symbol("cudaMemcpyFromSymbol", dst, symbol, count, offset, false, kind, nullptr,
                          Wait::kYes));
}
cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return done(copy_symbol("cudaMemcpyFromSymbolAsync", dst, symbol, count, offset, false, kind,
                          stream, Wait::kNo));
}

}  // extern "C"
