// A CUDA driver and runtime in one, whose calls return at once, and which know what must not be
// done: events used that went with their context, used streams that are gone, and events of others
// recorded where a capture goes on. Tests make its calls stand, to be where two threads meet.
#include "instant_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#undef cuEventElapsedTime

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "answers.h"

struct CUctx_st {
  int device;
};
struct CUevent_st {
  CUcontext context;
  bool alive;
  long recorded_ns;
};
struct CUstream_st {
  CUcontext context;
  bool alive;
  bool captures;
};
struct CUgraph_st {};

namespace {

constexpr int kDevices = 2;
std::recursive_mutex g_mutex;
CUcontext g_primary[kDevices];
std::set<CUevent> g_events;
std::set<CUstream> g_streams;
thread_local CUcontext t_current = nullptr;
thread_local int t_device = 0;
std::atomic<const char*> g_stands{nullptr};
std::atomic<long> g_standing{0};
std::atomic<long> g_misused{0}, g_captured{0};

long now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// Where a test said so: the first call of that name stands until it says otherwise.
void place(const char* name) {
  const char* expected = g_stands.load();
  if (expected == nullptr || std::strcmp(expected, name) != 0) return;
  if (g_standing.fetch_add(1) != 0) return;
  while (g_stands.load() == expected) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

CUcontext primary(int device) {
  const std::lock_guard lock(g_mutex);
  if (g_primary[device] == nullptr) g_primary[device] = new CUctx_st{device};
  return g_primary[device];
}
CUcontext current() {
  return t_current != nullptr ? t_current : t_current = primary(t_device);
}
CUcontext context_of(CUstream stream) {
  return stream == nullptr ? current() : stream->context;
}
CUresult used(CUstream stream) {
  if (stream != nullptr && !stream->alive) ++g_misused;
  return CUDA_SUCCESS;
}
CUresult used(CUevent event) {
  if (event->alive) return CUDA_SUCCESS;
  ++g_misused;
  return CUDA_ERROR_INVALID_HANDLE;
}

void end(CUcontext context) {
  const std::lock_guard lock(g_mutex);
  for (CUevent event : g_events) event->alive = event->alive && event->context != context;
  for (CUstream stream : g_streams) stream->alive = stream->alive && stream->context != context;
  if (t_current == context) t_current = nullptr;
}
// A primary context keeps its handle.
CUresult reset(int device) {
  if (g_primary[device] != nullptr) end(g_primary[device]);
  return CUDA_SUCCESS;
}
CUresult begin(CUstream stream) {
  place("begin");
  stream->captures = true;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuEventElapsedTime(float*, CUevent, CUevent);
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, size_t*);

CUctx_st* instant_context(int device) {
  return t_current = new CUctx_st{device};
}
void instant_stands(const char* name) {
  g_standing = 0;
  g_stands = name;
}
long instant_standing() {
  return g_standing;
}
long instant_misused() {
  return g_misused;
}
long instant_captured() {
  return g_captured;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  const bool captures = stream != nullptr && stream->captures;
  *status = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return used(stream);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  *context = context_of(stream);
  place("cuStreamGetCtx");  // between the question whether it captures and a record
  return used(stream);
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  t_current = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current()->device;
  return CUDA_SUCCESS;
}
DRIVER_ANSWERS(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode*)
CUresult cuEventCreate(CUevent* event, unsigned) {
  const std::lock_guard lock(g_mutex);
  *event = new CUevent_st{current(), true, 0};
  g_events.insert(*event);
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  const std::lock_guard lock(g_mutex);
  *stream = new CUstream_st{current(), true, false};
  g_streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  used(stream);
  const CUresult result = used(event);
  place("cuEventRecord");
  if (stream != nullptr && stream->captures) ++g_captured;
  event->recorded_ns = now();
  return result;
}
CUresult cuStreamQuery(CUstream stream) {
  return used(stream);
}
CUresult cuEventQuery(CUevent event) {
  place("cuEventQuery");
  return used(event);
}
CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  used(from);
  *ms = static_cast<float>(to->recorded_ns - from->recorded_ns) * 1e-6F;
  return used(to);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*,
                                   CUgraph* graph, const CUgraphNode**, size_t* count) {
  static CUgraph_st some;
  if (graph != nullptr) *graph = &some;
  if (count != nullptr) *count = 0;
  return cuStreamIsCapturing(stream, status);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  end(context);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = primary(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset(device);
}
// Device 1 has one owner only.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return device == 1 ? reset(device) : CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned*, int* active) {
  *active = device != 1;
  return CUDA_SUCCESS;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  t_device = device;
  t_current = primary(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  reset(current()->device);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  place("cudaMemcpyAsync");
  return cudaSuccess;
}
RUNTIME_ANSWERS(cudaLaunchKernel, const void*, dim3, dim3, void**, size_t, cudaStream_t)
RUNTIME_ANSWERS(cudaDeviceSynchronize, void)
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  cuStreamCreate(stream, 0);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream->alive = false;
  return cudaSuccess;
}
RUNTIME_ANSWERS(cudaEventRecord, cudaEvent_t, cudaStream_t)
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return cudaSuccess;
  begin(stream);  // the tests' event is one of a capture
  return cudaSuccess;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  cudaStreamWaitEvent(stream, event, flags);
  return CUDA_SUCCESS;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  begin(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
  begin(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t*) {
  stream->captures = false;
  return cudaSuccess;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  return begin(stream);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t, CUstreamCaptureMode) {
  return begin(stream);
}

}  // extern "C"
