// Calls the driver's copies, reached as argv[1] says:
//   linked, dlsym, dlvsym     by the names that the library exports
//   address, address_v1       from cuGetProcAddress, with and without the status argument
//   entry_point, entry_point_by_version   from the runtime (a libcudart.so.13 that is loaded)
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "../../clients/check.h"

#undef cuGetProcAddress
#undef cuMemcpyBatchAsync

// cuda.h declares the twins by a macro only.
extern "C" {
decltype(cuMemcpy) cuMemcpy_ptds;
decltype(cuMemcpyAsync) cuMemcpyAsync_ptsz;
decltype(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
decltype(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
decltype(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
decltype(cuMemcpy3D_v2) cuMemcpy3D_v2_ptds;
CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
// These are as in CUDA 12.
CUresult cuMemcpyBatchAsync(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                            size_t*, size_t, size_t*, CUstream);
}

namespace {

std::string_view way;

void* taken(const char* exported, const char* name, int version, unsigned flags) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  static void* const runtime = dlopen("libcudart.so.13", RTLD_NOW);
  void* found = nullptr;
  if (way == "dlsym") return dlsym(library, exported);
  if (way == "dlvsym") return dlvsym(library, exported, "");
  if (way == "address") {
    OK(cuGetProcAddress_v2(name, &found, version, flags, nullptr));
    return found;
  }
  if (way == "address_v1") {
    OK(cuGetProcAddress(name, &found, version, flags));
    return found;
  }
  if (way == "entry_point") {
    using Ask = cudaError_t (*)(const char*, void**, unsigned long long, void*);
    const auto ask = reinterpret_cast<Ask>(
        dlsym(runtime, flags == 0 ? "cudaGetDriverEntryPoint" : "cudaGetDriverEntryPoint_ptsz"));
    OK(ask(name, &found, 0, nullptr));
    return found;
  }
  MUST(way == "entry_point_by_version");
  OK(cudaGetDriverEntryPointByVersion(name, &found, static_cast<unsigned>(version), flags,
                                      nullptr));
  return found;
}

template <typename F>
F reached(F linked, const char* exported, const char* name, int version, unsigned flags) {
  return way == "linked" ? linked : reinterpret_cast<F>(taken(exported, name, version, flags));
}
// The same function by both its names. A twin is asked for by version 7.0 and the flag.
#define FUNCTION(exported, name, since) reached(&exported, #exported, #name, since, 0)
#define TWIN(exported, name) \
  reached(&exported, #exported, #name, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

template <typename Box>
Box box(const void* host, CUdeviceptr device, bool to_device) {
  Box b{};
  b.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  b.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  b.srcHost = host;
  b.dstHost = const_cast<void*>(host);
  b.srcDevice = b.dstDevice = device;
  b.srcPitch = b.dstPitch = 64;
  b.WidthInBytes = 12;
  b.Height = 5;
  if constexpr (requires { b.Depth; }) {
    b.srcHeight = b.dstHeight = 8;
    b.Depth = 3;
  }
  return b;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  way = argv[1];
  constexpr size_t kBytes = 1 << 16;
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 2));
  OK(cuCtxSetCurrent(context));
  CUdeviceptr a = 0, b = 0, managed = 0;
  void* pinned = nullptr;
  CUstream stream = nullptr;
  OK(cuMemAlloc(&a, kBytes));
  OK(cuMemAlloc(&b, kBytes));
  OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemHostAlloc(&pinned, kBytes, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<char> own(kBytes);
  char* host = own.data();
  const auto at = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };

  for (size_t n = 1; n <= 3; ++n) {
    OK(FUNCTION(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020)(a, host, 100 * n));
    OK(FUNCTION(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)(host, a, 10 * n));
    OK(FUNCTION(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020)(b, a, 1000 * n));
    OK(FUNCTION(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020)(b, pinned, 7 * n, stream));
    OK(FUNCTION(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020)(pinned, b, 5 * n, stream));
    OK(FUNCTION(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020)(a, b, 3 * n, stream));
  }
  // Only the pointers tell these directions.
  const auto copy = FUNCTION(cuMemcpy, cuMemcpy, 4000);
  const auto copy_async = FUNCTION(cuMemcpyAsync, cuMemcpyAsync, 4000);
  OK(copy(a, at(host), 11));
  OK(copy(at(pinned), a, 13));
  OK(copy(managed, at(host), 17));
  OK(copy_async(b, a, 19, stream));
  OK(copy_async(at(host), at(pinned), 23, stream));
  OK(FUNCTION(cuMemcpyPeer, cuMemcpyPeer, 4000)(a, context, b, context, 29));
  OK(FUNCTION(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000)(a, context, b, context, 31, stream));

  auto to2 = box<CUDA_MEMCPY2D>(host, a, true);
  auto from2 = box<CUDA_MEMCPY2D>(pinned, b, false);
  OK(FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2));
  OK(FUNCTION(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020)(&from2));
  OK(FUNCTION(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020)(&to2, stream));
  auto to3 = box<CUDA_MEMCPY3D>(host, a, true);
  auto from3 = box<CUDA_MEMCPY3D>(pinned, b, false);
  OK(FUNCTION(cuMemcpy3D_v2, cuMemcpy3D, 3020)(&to3));
  OK(FUNCTION(cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020)(&from3, stream));
  to2.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  OK(FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2));

  OK(TWIN(cuMemcpy_ptds, cuMemcpy)(a, at(host), 37));
  OK(TWIN(cuMemcpyAsync_ptsz, cuMemcpyAsync)(a, at(pinned), 41, nullptr));
  OK(TWIN(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD)(a, host, 43));
  OK(TWIN(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync)(host, a, 47, nullptr));
  OK(TWIN(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync)(&from2, stream));
  OK(TWIN(cuMemcpy3D_v2_ptds, cuMemcpy3D)(&to3));

  // Batches, with both prototypes.
  CUdeviceptr dsts[] = {a, b};
  CUdeviceptr srcs[] = {at(pinned), at(pinned)};
  size_t sizes[] = {53, 59};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0, failed = 0;
  if (way != "entry_point") {
    OK(FUNCTION(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080)(dsts, srcs, sizes, 2, &attributes,
                                                               &first, 1, &failed, stream));
  }
  OK(FUNCTION(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync, 13000)(dsts, srcs, sizes, 2, &attributes,
                                                                &first, 1, stream));
  // A pitch that is too small is refused.
  to2.srcPitch = to2.dstPitch = 1;
  REFUSED(FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2));
  OK(cuStreamSynchronize(stream));
}
