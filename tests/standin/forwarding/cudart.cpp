// A CUDA runtime that hands copies to the driver, as the real one does. It gets the driver's
// functions as the real one does, too: by the same names, versions and flags (CUDA 13.0's
// libcudart_static.a: dlopen, dlsym, cuGetProcAddress_v2). The stand-in's own runtime has no driver
// below it.
//
// Linked in (libcudart_static.a), it is nvcc's default. As a library of its own, it shows a runtime
// call together with the driver call that it causes.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#undef cuGetProcAddress

namespace {

// Functions of the driver, named as the real runtime asks for them: name, version, flags, type.
#define DRIVER(X)                                                                                 \
  X(set_device, "cuDevicePrimaryCtxRetain", 7000, 0, CUresult (*)(CUcontext*, CUdevice))          \
  X(set_context, "cuCtxSetCurrent", 4000, 0, CUresult (*)(CUcontext))                             \
  X(alloc, "cuMemAlloc", 3020, 0, CUresult (*)(CUdeviceptr*, size_t))                             \
  X(host_alloc, "cuMemHostAlloc", 2020, 0, CUresult (*)(void**, size_t, unsigned))                \
  X(free, "cuMemFree", 3020, 0, CUresult (*)(CUdeviceptr))                                        \
  X(free_host, "cuMemFreeHost", 2000, 0, CUresult (*)(void*))                                     \
  X(stream_create, "cuStreamCreate", 2000, 0, CUresult (*)(CUstream*, unsigned))                  \
  X(stream_wait, "cuStreamSynchronize", 2000, 0, CUresult (*)(CUstream))                          \
  X(copy, "cuMemcpy", 4000, 0, Copy)                                                              \
  X(copy_own, "cuMemcpy", 7000, 2, Copy)                                                          \
  X(copy_async, "cuMemcpyAsync", 4000, 0, CopyAsync)                                              \
  X(copy_async_own, "cuMemcpyAsync", 7000, 2, CopyAsync)                                          \
  X(h2d, "cuMemcpyHtoD", 3020, 0, CUresult (*)(CUdeviceptr, const void*, size_t))                 \
  X(h2d_own, "cuMemcpyHtoD", 7000, 2, CUresult (*)(CUdeviceptr, const void*, size_t))             \
  X(h2d_async, "cuMemcpyHtoDAsync", 3020, 0,                                                      \
    CUresult (*)(CUdeviceptr, const void*, size_t, CUstream))                                     \
  X(h2d_async_own, "cuMemcpyHtoDAsync", 7000, 2,                                                  \
    CUresult (*)(CUdeviceptr, const void*, size_t, CUstream))                                     \
  X(d2h, "cuMemcpyDtoH", 3020, 0, CUresult (*)(void*, CUdeviceptr, size_t))                       \
  X(d2h_async, "cuMemcpyDtoHAsync", 3020, 0, CUresult (*)(void*, CUdeviceptr, size_t, CUstream))  \
  X(d2d, "cuMemcpyDtoD", 3020, 0, Copy)                                                           \
  X(d2d_async, "cuMemcpyDtoDAsync", 3020, 0, CopyAsync)                                           \
  X(peer, "cuMemcpyPeer", 4000, 0,                                                                \
    CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))                         \
  X(peer_async, "cuMemcpyPeerAsync", 4000, 0,                                                     \
    CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))               \
  X(box2, "cuMemcpy2DUnaligned", 3020, 0, CUresult (*)(const CUDA_MEMCPY2D*))                     \
  X(box2_async, "cuMemcpy2DAsync", 3020, 0, CUresult (*)(const CUDA_MEMCPY2D*, CUstream))         \
  X(box3, "cuMemcpy3D", 3020, 0, CUresult (*)(const CUDA_MEMCPY3D*))                              \
  X(box3_async, "cuMemcpy3DAsync", 3020, 0, CUresult (*)(const CUDA_MEMCPY3D*, CUstream))         \
  X(begin_capture, "cuStreamBeginCapture", 10010, 0, CUresult (*)(CUstream, CUstreamCaptureMode)) \
  X(end_capture, "cuStreamEndCapture", 10000, 0, CUresult (*)(CUstream, CUgraph*))                \
  X(instantiate, "cuGraphInstantiateWithFlags", 11040, 0,                                         \
    CUresult (*)(CUgraphExec*, CUgraph, unsigned long long))                                      \
  X(launch, "cuGraphLaunch", 10000, 0, CUresult (*)(CUgraphExec, CUstream))                       \
  X(graph_destroy, "cuGraphDestroy", 10000, 0, CUresult (*)(CUgraph))                             \
  X(exec_destroy, "cuGraphExecDestroy", 10000, 0, CUresult (*)(CUgraphExec))

using Copy = CUresult (*)(CUdeviceptr, CUdeviceptr, size_t);
using CopyAsync = CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

template <typename F>
struct Entry {
  F function;
};

struct Driver {
#define X(field, name, version, flags, ...) Entry<__VA_ARGS__> field;
  DRIVER(X)
#undef X

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* found = library == nullptr ? nullptr : dlsym(library, "cuGetProcAddress_v2");
    auto ask = reinterpret_cast<GetProcAddress>(found);
    if (ask == nullptr) stop("cuGetProcAddress_v2");
    get(ask, "cuGetProcAddress", 12000, 0, ask);
#define X(field, name, version, flags, ...) get(ask, name, version, flags, field.function);
    DRIVER(X)
#undef X
  }

  template <typename F>
  static void get(GetProcAddress ask, const char* name, int version, cuuint64_t flags, F& to) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (ask(name, &found, version, flags, &status) != CUDA_SUCCESS || found == nullptr) stop(name);
    to = reinterpret_cast<F>(found);
  }
  [[noreturn]] static void stop(const char* name) {
    std::fprintf(stderr, "forwarding cudart: no %s\n", name);
    std::abort();
  }
};

Driver& driver() {
  static Driver d;
  return d;
}

cudaError_t result(CUresult r) {
  return static_cast<cudaError_t>(r);
}
CUdeviceptr at(const void* p) {
  return reinterpret_cast<CUdeviceptr>(p);
}

CUmemorytype type_of(cudaMemcpyKind kind, bool source) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = source ? kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
                           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

template <typename Box>
void fill(Box& b, void* dst, size_t dpitch, const void* src, size_t spitch, cudaMemcpyKind kind) {
  b.dstMemoryType = type_of(kind, false);
  b.dstHost = dst;
  b.dstDevice = at(dst);
  b.dstPitch = dpitch;
  b.srcMemoryType = type_of(kind, true);
  b.srcHost = src;
  b.srcDevice = at(src);
  b.srcPitch = spitch;
}

CUDA_MEMCPY2D rectangle(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                        size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D b{};
  fill(b, dst, dpitch, src, spitch, kind);
  b.WidthInBytes = width;
  b.Height = height;
  return b;
}

CUDA_MEMCPY3D block(const cudaMemcpy3DParms& p) {
  CUDA_MEMCPY3D b{};
  fill(b, p.dstPtr.ptr, p.dstPtr.pitch, p.srcPtr.ptr, p.srcPtr.pitch, p.kind);
  b.dstHeight = p.dstPtr.ysize;
  b.srcHeight = p.srcPtr.ysize;
  b.dstXInBytes = p.dstPos.x;
  b.dstY = p.dstPos.y;
  b.dstZ = p.dstPos.z;
  b.srcXInBytes = p.srcPos.x;
  b.srcY = p.srcPos.y;
  b.srcZ = p.srcPos.z;
  b.WidthInBytes = p.extent.width;
  b.Height = p.extent.height;
  b.Depth = p.extent.depth;
  return b;
}

}  // namespace

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CUcontext context = nullptr;
  const CUresult r = driver().set_device.function(&context, device);
  return result(r == CUDA_SUCCESS ? driver().set_context.function(context) : r);
}
cudaError_t cudaMalloc(void** p, size_t size) {
  CUdeviceptr out = 0;
  const CUresult r = driver().alloc.function(&out, size);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is an integer here
  *p = reinterpret_cast<void*>(out);
  return result(r);
}
cudaError_t cudaFree(void* p) {
  return result(driver().free.function(at(p)));
}
cudaError_t cudaHostAlloc(void** p, size_t size, unsigned flags) {
  return result(driver().host_alloc.function(p, size, flags));
}
cudaError_t cudaFreeHost(void* p) {
  return result(driver().free_host.function(p));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return result(driver().stream_create.function(stream, flags));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return result(driver().stream_wait.function(stream));
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return result(driver().h2d.function(at(dst), src, count));
    case cudaMemcpyDeviceToHost:
      return result(driver().d2h.function(dst, at(src), count));
    case cudaMemcpyDeviceToDevice:
      return result(driver().d2d.function(at(dst), at(src), count));
    default:
      return result(driver().copy.function(at(dst), at(src), count));
  }
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return result(driver().h2d_async.function(at(dst), src, count, stream));
    case cudaMemcpyDeviceToHost:
      return result(driver().d2h_async.function(dst, at(src), count, stream));
    case cudaMemcpyDeviceToDevice:
      return result(driver().d2d_async.function(at(dst), at(src), count, stream));
    default:
      return result(driver().copy_async.function(at(dst), at(src), count, stream));
  }
}
cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t count, cudaMemcpyKind kind);
cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return result(kind == cudaMemcpyHostToDevice
                    ? driver().h2d_own.function(at(dst), src, count)
                    : driver().copy_own.function(at(dst), at(src), count));
}
cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                                 cudaStream_t stream);
cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return result(kind == cudaMemcpyHostToDevice
                    ? driver().h2d_async_own.function(at(dst), src, count, stream)
                    : driver().copy_async_own.function(at(dst), at(src), count, stream));
}
cudaError_t cudaMemcpyPeer(void* dst, int, const void* src, int, size_t count) {
  return result(driver().peer.function(at(dst), nullptr, at(src), nullptr, count));
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t count,
                                cudaStream_t stream) {
  return result(driver().peer_async.function(at(dst), nullptr, at(src), nullptr, count, stream));
}
cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  const CUDA_MEMCPY2D b = rectangle(dst, dpitch, src, spitch, width, height, kind);
  return result(driver().box2.function(&b));
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const CUDA_MEMCPY2D b = rectangle(dst, dpitch, src, spitch, width, height, kind);
  return result(driver().box2_async.function(&b, stream));
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  const CUDA_MEMCPY3D b = block(*p);
  return result(driver().box3.function(&b));
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  const CUDA_MEMCPY3D b = block(*p);
  return result(driver().box3_async.function(&b, stream));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return result(driver().begin_capture.function(stream, static_cast<CUstreamCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return result(driver().end_capture.function(stream, graph));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return result(driver().instantiate.function(exec, graph, flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return result(driver().launch.function(exec, stream));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return result(driver().graph_destroy.function(graph));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return result(driver().exec_destroy.function(exec));
}

}  // extern "C"
