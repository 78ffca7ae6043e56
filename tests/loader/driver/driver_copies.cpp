// Calls the driver's copies, reached as argv[1] says:
//   linked, dlsym, dlvsym     by the names that the library exports
//   address, address_v1       from cuGetProcAddress, with and without the status argument
//   entry_point, entry_point_by_version   from the runtime (a libcudart.so.13 that is loaded)
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

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

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "driver_copies: %s\n", what);
  std::exit(1);
}

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) stop(what);
}

void* taken(const char* exported, const char* name, int version, unsigned flags) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  static void* const runtime = dlopen("libcudart.so.13", RTLD_NOW);
  void* found = nullptr;
  if (way == "dlsym") return dlsym(library, exported);
  if (way == "dlvsym") return dlvsym(library, exported, "");
  if (way == "address") {
    check(cuGetProcAddress_v2(name, &found, version, flags, nullptr), name);
    return found;
  }
  if (way == "address_v1") {
    check(cuGetProcAddress(name, &found, version, flags), name);
    return found;
  }
  if (way == "entry_point") {
    using Ask = cudaError_t (*)(const char*, void**, unsigned long long, void*);
    const auto ask = reinterpret_cast<Ask>(
        dlsym(runtime, flags == 0 ? "cudaGetDriverEntryPoint" : "cudaGetDriverEntryPoint_ptsz"));
    if (ask(name, &found, 0, nullptr) != cudaSuccess) stop(name);
    return found;
  }
  if (way == "entry_point_by_version") {
    if (cudaGetDriverEntryPointByVersion(name, &found, static_cast<unsigned>(version), flags,
                                         nullptr) != cudaSuccess) {
      stop(name);
    }
    return found;
  }
  stop("no such way");
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
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 2), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUdeviceptr a = 0, b = 0, managed = 0;
  void* pinned = nullptr;
  CUstream stream = nullptr;
  check(cuMemAlloc(&a, kBytes), "cuMemAlloc");
  check(cuMemAlloc(&b, kBytes), "cuMemAlloc");
  check(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  check(cuMemHostAlloc(&pinned, kBytes, 0), "cuMemHostAlloc");
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::vector<char> own(kBytes);
  char* host = own.data();
  const auto at = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };

  for (size_t n = 1; n <= 3; ++n) {
    check(FUNCTION(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020)(a, host, 100 * n), "HtoD");
    check(FUNCTION(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)(host, a, 10 * n), "DtoH");
    check(FUNCTION(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020)(b, a, 1000 * n), "DtoD");
    check(FUNCTION(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020)(b, pinned, 7 * n, stream), "");
    check(FUNCTION(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020)(pinned, b, 5 * n, stream), "");
    check(FUNCTION(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020)(a, b, 3 * n, stream), "");
  }
  // Only the pointers tell these directions.
  const auto copy = FUNCTION(cuMemcpy, cuMemcpy, 4000);
  const auto copy_async = FUNCTION(cuMemcpyAsync, cuMemcpyAsync, 4000);
  check(copy(a, at(host), 11), "cuMemcpy");
  check(copy(at(pinned), a, 13), "cuMemcpy");
  check(copy(managed, at(host), 17), "cuMemcpy");
  check(copy_async(b, a, 19, stream), "cuMemcpyAsync");
  check(copy_async(at(host), at(pinned), 23, stream), "cuMemcpyAsync");
  check(FUNCTION(cuMemcpyPeer, cuMemcpyPeer, 4000)(a, context, b, context, 29), "Peer");
  check(FUNCTION(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000)(a, context, b, context, 31, stream),
        "PeerAsync");

  auto to2 = box<CUDA_MEMCPY2D>(host, a, true);
  auto from2 = box<CUDA_MEMCPY2D>(pinned, b, false);
  check(FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2), "2D");
  check(FUNCTION(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020)(&from2), "2DUnaligned");
  check(FUNCTION(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020)(&to2, stream), "2DAsync");
  auto to3 = box<CUDA_MEMCPY3D>(host, a, true);
  auto from3 = box<CUDA_MEMCPY3D>(pinned, b, false);
  check(FUNCTION(cuMemcpy3D_v2, cuMemcpy3D, 3020)(&to3), "3D");
  check(FUNCTION(cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020)(&from3, stream), "3DAsync");
  to2.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  check(FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2), "2D, unified");

  check(TWIN(cuMemcpy_ptds, cuMemcpy)(a, at(host), 37), "cuMemcpy_ptds");
  check(TWIN(cuMemcpyAsync_ptsz, cuMemcpyAsync)(a, at(pinned), 41, nullptr), "cuMemcpyAsync_ptsz");
  check(TWIN(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD)(a, host, 43), "HtoD_ptds");
  check(TWIN(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync)(host, a, 47, nullptr), "DtoHAsync_ptsz");
  check(TWIN(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync)(&from2, stream), "2DAsync_ptsz");
  check(TWIN(cuMemcpy3D_v2_ptds, cuMemcpy3D)(&to3), "3D_ptds");

  // Batches, with both prototypes: two directions in one call.
  CUdeviceptr dsts[] = {a, b, at(pinned)};
  CUdeviceptr srcs[] = {at(pinned), at(pinned), b};
  size_t sizes[] = {53, 59, 61};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0, failed = 0;
  if (way != "entry_point") {
    check(FUNCTION(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080)(dsts, srcs, sizes, 3, &attributes,
                                                                  &first, 1, &failed, stream),
          "BatchAsync");
  }
  check(FUNCTION(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync, 13000)(dsts, srcs, sizes, 3,
                                                                   &attributes, &first, 1, stream),
        "BatchAsync_v2");
  // A pitch that is too small is refused.
  to2.srcPitch = to2.dstPitch = 1;
  if (FUNCTION(cuMemcpy2D_v2, cuMemcpy2D, 3020)(&to2) == CUDA_SUCCESS) stop("was not refused");
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}
