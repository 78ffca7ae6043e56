// Calls every function that a tracer may wrap, on libraries that have no GPU, and prints what each
// returned. Nothing here can succeed that needs a device: the point is that every error code, and
// the runtime's sticky last error, is the library's own.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "per_thread_copies.h"

// Declares other entry points in the same way.
extern "C" {
// The header overloads these.
cudaError_t entry_point(const char*, void**, unsigned long long,
                        cudaDriverEntryPointQueryResult*) __asm__("cudaGetDriverEntryPoint");
decltype(entry_point) cudaGetDriverEntryPoint_ptsz;
cudaError_t entry_point_by_version(
    const char*, void**, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult*) __asm__("cudaGetDriverEntryPointByVersion");
decltype(entry_point_by_version) cudaGetDriverEntryPointByVersion_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
decltype(cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz;
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamBeginCaptureToGraph) cudaStreamBeginCaptureToGraph_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
cudaError_t cudaMallocAsync_ptsz(void**, size_t, cudaStream_t);  // overloaded in C++
cudaError_t cudaMallocFromPoolAsync_ptsz(void**, size_t, cudaMemPool_t, cudaStream_t);
decltype(cudaFreeAsync) cudaFreeAsync_ptsz;
decltype(cudaEventRecord) cudaEventRecord_ptsz;
decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz;
decltype(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz;
decltype(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;
// Overloaded in C++, or in no header.
cudaError_t cudaLaunchKernel_ptsz(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel(void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void*, dim3, dim3, void**, size_t, cudaStream_t);
decltype(cudaLaunchHostFunc) cudaLaunchHostFunc_ptsz;
decltype(cudaStreamAddCallback) cudaStreamAddCallback_ptsz;
}

// Declares these as cuda_profiler_api.h does, which not every build has.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

namespace {

// Calls that look at memory before they look for a device find memory here.
char source[256];
char target[256];
ncclUniqueId id;
ncclComm_t comm;
cudaStream_t stream;
cudaEvent_t event;
cudaGraph_t graph;
cudaGraphExec_t executable;
cudaGraphInstantiateParams instantiate;
cudaGraphExecUpdateResultInfo update;
cudaGraphNode_t node;
void* pointer;
size_t pitch;
cudaPitchedPtr pitched;
const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
cudaArray_t array;
cudaMemPool_t pool;

cudaMemcpy3DParms Box() {
  cudaMemcpy3DParms box{};
  box.srcPtr = {source, 16, 16, 4};
  box.dstPtr = {target, 16, 16, 4};
  box.extent = {8, 2, 2};
  box.kind = cudaMemcpyHostToDevice;
  return box;
}

cudaMemcpy3DPeerParms PeerBox() {
  cudaMemcpy3DPeerParms box{};
  box.srcPtr = {source, 16, 16, 4};
  box.dstPtr = {target, 16, 16, 4};
  box.extent = {8, 2, 2};
  return box;
}

const cudaMemcpy3DParms box = Box();
constexpr cudaMemcpyKind kKind = cudaMemcpyHostToDevice;

cudaGraphNodeParams CopyNode() {
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeMemcpy;
  params.memcpy.copyParams = box;
  return params;
}
cudaGraphNodeParams node_params = CopyNode();
const cudaMemcpy3DPeerParms peer_box = PeerBox();

cudaDriverEntryPointQueryResult found;

// Batches of one.
void* targets[] = {target};
const void* sources[] = {source};
size_t sizes[] = {64};
size_t zero = 0;
cudaMemcpyAttributes attributes = {cudaMemcpySrcAccessOrderStream, {}, {}, 0};
cudaMemLocation location = {cudaMemLocationTypeHost, 0};

cudaMemcpy3DBatchOp Operation() {
  cudaMemcpy3DBatchOp operation{};
  operation.src.type = operation.dst.type = cudaMemcpyOperandTypePointer;
  operation.src.op.ptr = {source, 16, 4, {}};
  operation.dst.op.ptr = {target, 16, 4, {}};
  operation.extent = {8, 2, 2};
  operation.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  return operation;
}
cudaMemcpy3DBatchOp operation = Operation();

struct Call {
  const char* name;
  int (*run)();
};

const void* const kernel = source;  // no kernel, as the runtime finds out
constexpr dim3 one{1, 1, 1};
const cudaLaunchConfig_t launch{one, one, 0, nullptr, nullptr, 0};
void host_function(void*) {}
void stream_callback(cudaStream_t, cudaError_t, void*) {}

#define CALL(name, ...)                                       \
  {                                                           \
#name, [] { return static_cast<int>(name(__VA_ARGS__)); } \
  }
// The function, and its twin for the thread's own default stream.
#define TWIN(name, suffix, ...) CALL(name, __VA_ARGS__), CALL(name##suffix, __VA_ARGS__)

const Call kNcclCalls[] = {
    CALL(ncclGetUniqueId, &id),
    CALL(ncclCommInitRank, &comm, 1, id, 0),
    CALL(ncclCommInitRankConfig, &comm, 1, id, 0, nullptr),
    CALL(ncclCommInitRankScalable, &comm, 1, 0, 1, &id, nullptr),
    CALL(ncclCommInitAll, &comm, 1, nullptr),
    CALL(ncclCommSplit, nullptr, 0, 0, &comm, nullptr),
    CALL(ncclCommFinalize, nullptr),
    CALL(ncclCommDestroy, nullptr),
    CALL(ncclCommAbort, nullptr),
    CALL(ncclCommRevoke, nullptr, NCCL_REVOKE_DEFAULT),
    CALL(ncclCommGetAsyncError, nullptr, nullptr),
    CALL(ncclAllGather, source, target, 4, ncclFloat32, nullptr, nullptr),
    CALL(ncclReduceScatter, source, target, 4, ncclFloat32, ncclSum, nullptr, nullptr),
    CALL(ncclAllReduce, source, target, 4, ncclFloat32, ncclSum, nullptr, nullptr),
    CALL(ncclBroadcast, source, target, 4, ncclFloat32, 0, nullptr, nullptr),
    CALL(ncclBcast, target, 4, ncclFloat32, 0, nullptr, nullptr),
    CALL(ncclReduce, source, target, 4, ncclFloat32, ncclSum, 0, nullptr, nullptr),
    CALL(ncclAlltoAll, source, target, 4, ncclFloat32, nullptr, nullptr),
    CALL(ncclGather, source, target, 4, ncclFloat32, 0, nullptr, nullptr),
    CALL(ncclScatter, source, target, 4, ncclFloat32, 0, nullptr, nullptr),
    CALL(ncclSend, source, 4, ncclFloat32, 0, nullptr, nullptr),
    CALL(ncclRecv, target, 4, ncclFloat32, 0, nullptr, nullptr),
    // An empty group succeeds.
    CALL(ncclGroupStart),
    CALL(ncclGroupEnd),
    // A call that is refused inside a nested group.
    CALL(ncclGroupStart),
    CALL(ncclGroupStart),
    CALL(ncclAllGather, source, target, 4, ncclFloat32, nullptr, nullptr),
    CALL(ncclGroupEnd),
    CALL(ncclGroupEnd),
    CALL(ncclGroupStart),
    CALL(ncclGroupSimulateEnd, nullptr),
};

const Call kCudaCalls[] = {
    CALL(cudaSetDevice, 0),
    CALL(cudaMalloc, &pointer, 64),
    CALL(cudaMallocPitch, &pointer, &pitch, 64, 2),
    CALL(cudaMalloc3D, &pitched, {16, 4, 2}),
    CALL(cudaMallocArray, &array, &format, 16, 4, 0),
    CALL(cudaMalloc3DArray, &array, &format, {16, 4, 2}, 0),
    CALL(cudaFreeArray, nullptr),
    TWIN(cudaMallocAsync, _ptsz, &pointer, 64, stream),
    TWIN(cudaMallocFromPoolAsync, _ptsz, &pointer, 64, pool, stream),
    CALL(cudaMallocHost, &pointer, 64),
    CALL(cudaMallocManaged, &pointer, 64, cudaMemAttachGlobal),
    CALL(cudaHostAlloc, &pointer, 64, cudaHostAllocDefault),
    CALL(cudaHostRegister, source, sizeof source, cudaHostRegisterDefault),
    CALL(cudaHostUnregister, source),
    CALL(cudaFree, nullptr),
    TWIN(cudaFreeAsync, _ptsz, nullptr, stream),
    CALL(cudaFreeHost, nullptr),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyHostToHost),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyDefault),
    CALL(cudaMemcpy_ptds, target, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyAsync, target, source, 64, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyAsync, target, source, 64, cudaMemcpyDefault, stream),
    CALL(cudaMemcpyAsync_ptsz, target, source, 64, cudaMemcpyHostToDevice, stream),
    TWIN(cudaMemcpy2D, _ptds, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice),
    TWIN(cudaMemcpy2DAsync, _ptsz, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice, stream),
    TWIN(cudaMemcpy2DToArray, _ptds, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice),
    TWIN(cudaMemcpy2DToArrayAsync, _ptsz, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice,
         stream),
    TWIN(cudaMemcpy2DFromArray, _ptds, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost),
    TWIN(cudaMemcpy2DFromArrayAsync, _ptsz, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost,
         stream),
    TWIN(cudaMemcpy2DArrayToArray, _ptds, nullptr, 0, 0, nullptr, 0, 0, 8, 4,
         cudaMemcpyDeviceToDevice),
    TWIN(cudaMemcpy3D, _ptds, &box),
    TWIN(cudaMemcpy3DAsync, _ptsz, &box, stream),
    TWIN(cudaMemcpy3DPeer, _ptds, &peer_box),
    TWIN(cudaMemcpy3DPeerAsync, _ptsz, &peer_box, stream),
    CALL(cudaMemcpyPeer, target, 0, source, 1, 64),
    CALL(cudaMemcpyPeerAsync, target, 0, source, 1, 64, stream),
    TWIN(cudaMemcpyToSymbol, _ptds, target, source, 64, 0, cudaMemcpyHostToDevice),
    TWIN(cudaMemcpyToSymbolAsync, _ptsz, target, source, 64, 0, cudaMemcpyHostToDevice, stream),
    TWIN(cudaMemcpyFromSymbol, _ptds, target, source, 64, 0, cudaMemcpyDeviceToHost),
    TWIN(cudaMemcpyFromSymbolAsync, _ptsz, target, source, 64, 0, cudaMemcpyDeviceToHost, stream),
    TWIN(cudaMemcpyToArray, _ptds, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice),
    TWIN(cudaMemcpyToArrayAsync, _ptsz, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice, stream),
    TWIN(cudaMemcpyFromArray, _ptds, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost),
    TWIN(cudaMemcpyFromArrayAsync, _ptsz, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost,
         stream),
    TWIN(cudaMemcpyArrayToArray, _ptds, nullptr, 0, 0, nullptr, 0, 0, 64, cudaMemcpyDeviceToDevice),
    TWIN(cudaMemcpyBatchAsync, _ptsz, targets, sources, sizes, 1, &attributes, &zero, 1, stream),
    TWIN(cudaMemcpy3DBatchAsync, _ptsz, 1, &operation, 0, stream),
    TWIN(cudaMemPrefetchAsync, _ptsz, source, 64, location, 0, stream),
    TWIN(cudaMemPrefetchBatchAsync, _ptsz, targets, sizes, 1, &location, &zero, 1, 0, stream),
    TWIN(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, targets, sizes, 1, &location, &zero, 1, 0,
         stream),
    {"cudaGetDriverEntryPoint", [] { return int{entry_point("cuInit", &pointer, 0, &found)}; }},
    CALL(cudaGetDriverEntryPoint_ptsz, "cuInit", &pointer, 0, &found),
    {"cudaGetDriverEntryPointByVersion",
     [] { return int{entry_point_by_version("cuInit", &pointer, 12000, 0, &found)}; }},
    CALL(cudaGetDriverEntryPointByVersion_ptsz, "cuInit", &pointer, 12000, 0, &found),
    TWIN(cudaStreamBeginCapture, _ptsz, stream, cudaStreamCaptureModeGlobal),
    TWIN(cudaStreamBeginCaptureToGraph, _ptsz, stream, graph, nullptr, nullptr, 0,
         cudaStreamCaptureModeGlobal),
    TWIN(cudaStreamEndCapture, _ptsz, stream, &graph),
    CALL(cudaGraphInstantiate, &executable, graph, 0),
    CALL(cudaGraphInstantiateWithFlags, &executable, graph, 0),
    TWIN(cudaGraphInstantiateWithParams, _ptsz, &executable, graph, &instantiate),
    CALL(cudaGraphClone, &graph, graph),
    CALL(cudaGraphCreate, &graph, 0),
    CALL(cudaGraphAddMemcpyNode, &node, graph, nullptr, 0, &box),
    CALL(cudaGraphAddMemcpyNode1D, &node, graph, nullptr, 0, target, source, 8, kKind),
    CALL(cudaGraphAddMemcpyNodeToSymbol, &node, graph, nullptr, 0, target, source, 8, 0, kKind),
    CALL(cudaGraphAddMemcpyNodeFromSymbol, &node, graph, nullptr, 0, target, source, 8, 0, kKind),
    CALL(cudaGraphAddNode, &node, graph, nullptr, nullptr, 0, &node_params),
    CALL(cudaGraphAddChildGraphNode, &node, graph, nullptr, 0, graph),
    CALL(cudaGraphMemcpyNodeSetParams, node, &box),
    CALL(cudaGraphMemcpyNodeSetParams1D, node, target, source, 8, kKind),
    CALL(cudaGraphMemcpyNodeSetParamsToSymbol, node, target, source, 8, 0, kKind),
    CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, node, target, source, 8, 0, kKind),
    CALL(cudaGraphNodeSetParams, node, &node_params),
    CALL(cudaGraphExecMemcpyNodeSetParams, executable, node, &box),
    CALL(cudaGraphExecMemcpyNodeSetParams1D, executable, node, target, source, 8, kKind),
    CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, executable, node, target, source, 8, 0, kKind),
    CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, executable, node, target, source, 8, 0, kKind),
    CALL(cudaGraphExecNodeSetParams, executable, node, &node_params),
    CALL(cudaGraphExecChildGraphNodeSetParams, executable, node, graph),
    CALL(cudaGraphNodeSetEnabled, executable, node, 0),
    CALL(cudaGraphExecUpdate, executable, graph, &update),
    CALL(cudaGraphDestroyNode, node),
    TWIN(cudaGraphLaunch, _ptsz, executable, stream),
    CALL(cudaGraphExecDestroy, executable),
    CALL(cudaGraphDestroy, graph),
    TWIN(cudaLaunchKernel, _ptsz, kernel, one, one, nullptr, 0, stream),
    TWIN(__cudaLaunchKernel, _ptsz, nullptr, one, one, nullptr, 0, stream),
    TWIN(cudaLaunchKernelExC, _ptsz, &launch, kernel, nullptr),
    TWIN(cudaLaunchCooperativeKernel, _ptsz, kernel, one, one, nullptr, 0, stream),
    TWIN(cudaLaunchHostFunc, _ptsz, stream, &host_function, nullptr),
    TWIN(cudaStreamAddCallback, _ptsz, stream, &stream_callback, nullptr, 0),
    TWIN(cudaEventRecord, _ptsz, event, stream),
    TWIN(cudaEventRecordWithFlags, _ptsz, event, stream, 0),
    TWIN(cudaStreamWaitEvent, _ptsz, stream, event, 0),
    TWIN(cudaStreamSynchronize, _ptsz, stream),
    CALL(cudaEventSynchronize, event),
    CALL(cudaStreamDestroy, stream),
    CALL(cudaDeviceSynchronize),
    CALL(cudaProfilerStart),
    CALL(cudaProfilerStop),
    CALL(cudaDeviceReset),
};

#undef CALL

// False if an older NCCL lacks the function. Calls are bound when they are made, so the rest works.
bool NcclHas(const char* name) {
  static void* const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return !library || dlsym(library, name) != nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  // The arguments name functions that this run's NCCL does not survive without a communicator.
  const auto left_out = [&](const char* name) {
    return std::any_of(argv + 1, argv + argc, [&](auto arg) { return !std::strcmp(arg, name); });
  };
  for (const Call& call : kNcclCalls) {
    if (NcclHas(call.name) && !left_out(call.name)) std::printf("%s %d\n", call.name, call.run());
  }
  for (const Call& call : kCudaCalls) {
    const int result = call.run();
    std::printf("%s %d, last error %d\n", call.name, result, cudaPeekAtLastError());
  }
  // The error state is as the calls above left it, and is cleared (or not) as always.
  const int last = cudaGetLastError();
  std::printf("cudaGetLastError %d, then %d\n", last, cudaGetLastError());
}
