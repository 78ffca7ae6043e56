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
    CALL(cudaMallocAsync, &pointer, 64, stream),
    CALL(cudaMallocAsync_ptsz, &pointer, 64, stream),
    CALL(cudaMallocFromPoolAsync, &pointer, 64, pool, stream),
    CALL(cudaMallocFromPoolAsync_ptsz, &pointer, 64, pool, stream),
    CALL(cudaMallocHost, &pointer, 64),
    CALL(cudaMallocManaged, &pointer, 64, cudaMemAttachGlobal),
    CALL(cudaHostAlloc, &pointer, 64, cudaHostAllocDefault),
    CALL(cudaHostRegister, source, sizeof source, cudaHostRegisterDefault),
    CALL(cudaHostUnregister, source),
    CALL(cudaFree, nullptr),
    CALL(cudaFreeAsync, nullptr, stream),
    CALL(cudaFreeAsync_ptsz, nullptr, stream),
    CALL(cudaFreeHost, nullptr),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyHostToHost),
    CALL(cudaMemcpy, target, source, 64, cudaMemcpyDefault),
    CALL(cudaMemcpy_ptds, target, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyAsync, target, source, 64, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyAsync, target, source, 64, cudaMemcpyDefault, stream),
    CALL(cudaMemcpyAsync_ptsz, target, source, 64, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpy2D, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy2D_ptds, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy2DAsync, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpy2DAsync_ptsz, target, 16, source, 16, 8, 4, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpy2DToArray, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy2DToArray_ptds, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice),
    CALL(cudaMemcpy2DToArrayAsync, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpy2DToArrayAsync_ptsz, nullptr, 0, 0, source, 16, 8, 4, cudaMemcpyHostToDevice,
         stream),
    CALL(cudaMemcpy2DFromArray, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpy2DFromArray_ptds, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpy2DFromArrayAsync, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost,
         stream),
    CALL(cudaMemcpy2DFromArrayAsync_ptsz, target, 16, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToHost,
         stream),
    CALL(cudaMemcpy2DArrayToArray, nullptr, 0, 0, nullptr, 0, 0, 8, 4, cudaMemcpyDeviceToDevice),
    CALL(cudaMemcpy2DArrayToArray_ptds, nullptr, 0, 0, nullptr, 0, 0, 8, 4,
         cudaMemcpyDeviceToDevice),
    CALL(cudaMemcpy3D, &box),
    CALL(cudaMemcpy3D_ptds, &box),
    CALL(cudaMemcpy3DAsync, &box, stream),
    CALL(cudaMemcpy3DAsync_ptsz, &box, stream),
    CALL(cudaMemcpy3DPeer, &peer_box),
    CALL(cudaMemcpy3DPeer_ptds, &peer_box),
    CALL(cudaMemcpy3DPeerAsync, &peer_box, stream),
    CALL(cudaMemcpy3DPeerAsync_ptsz, &peer_box, stream),
    CALL(cudaMemcpyPeer, target, 0, source, 1, 64),
    CALL(cudaMemcpyPeerAsync, target, 0, source, 1, 64, stream),
    CALL(cudaMemcpyToSymbol, target, source, 64, 0, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyToSymbol_ptds, target, source, 64, 0, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyToSymbolAsync, target, source, 64, 0, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpyToSymbolAsync_ptsz, target, source, 64, 0, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpyFromSymbol, target, source, 64, 0, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpyFromSymbol_ptds, target, source, 64, 0, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpyFromSymbolAsync, target, source, 64, 0, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyFromSymbolAsync_ptsz, target, source, 64, 0, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyToArray, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyToArray_ptds, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice),
    CALL(cudaMemcpyToArrayAsync, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpyToArrayAsync_ptsz, nullptr, 0, 0, source, 64, cudaMemcpyHostToDevice, stream),
    CALL(cudaMemcpyFromArray, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpyFromArray_ptds, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost),
    CALL(cudaMemcpyFromArrayAsync, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyFromArrayAsync_ptsz, target, nullptr, 0, 0, 64, cudaMemcpyDeviceToHost, stream),
    CALL(cudaMemcpyArrayToArray, nullptr, 0, 0, nullptr, 0, 0, 64, cudaMemcpyDeviceToDevice),
    CALL(cudaMemcpyArrayToArray_ptds, nullptr, 0, 0, nullptr, 0, 0, 64, cudaMemcpyDeviceToDevice),
    CALL(cudaMemcpyBatchAsync, targets, sources, sizes, 1, &attributes, &zero, 1, stream),
    CALL(cudaMemcpyBatchAsync_ptsz, targets, sources, sizes, 1, &attributes, &zero, 1, stream),
    CALL(cudaMemcpy3DBatchAsync, 1, &operation, 0, stream),
    CALL(cudaMemcpy3DBatchAsync_ptsz, 1, &operation, 0, stream),
    CALL(cudaMemPrefetchAsync, source, 64, location, 0, stream),
    CALL(cudaMemPrefetchAsync_ptsz, source, 64, location, 0, stream),
    CALL(cudaMemPrefetchBatchAsync, targets, sizes, 1, &location, &zero, 1, 0, stream),
    CALL(cudaMemPrefetchBatchAsync_ptsz, targets, sizes, 1, &location, &zero, 1, 0, stream),
    CALL(cudaMemDiscardAndPrefetchBatchAsync, targets, sizes, 1, &location, &zero, 1, 0, stream),
    CALL(cudaMemDiscardAndPrefetchBatchAsync_ptsz, targets, sizes, 1, &location, &zero, 1, 0,
         stream),
    {"cudaGetDriverEntryPoint", [] { return int{entry_point("cuInit", &pointer, 0, &found)}; }},
    CALL(cudaGetDriverEntryPoint_ptsz, "cuInit", &pointer, 0, &found),
    {"cudaGetDriverEntryPointByVersion",
     [] { return int{entry_point_by_version("cuInit", &pointer, 12000, 0, &found)}; }},
    CALL(cudaGetDriverEntryPointByVersion_ptsz, "cuInit", &pointer, 12000, 0, &found),
    CALL(cudaStreamBeginCapture, stream, cudaStreamCaptureModeGlobal),
    CALL(cudaStreamBeginCapture_ptsz, stream, cudaStreamCaptureModeGlobal),
    CALL(cudaStreamBeginCaptureToGraph, stream, graph, nullptr, nullptr, 0,
         cudaStreamCaptureModeGlobal),
    CALL(cudaStreamBeginCaptureToGraph_ptsz, stream, graph, nullptr, nullptr, 0,
         cudaStreamCaptureModeGlobal),
    CALL(cudaStreamEndCapture, stream, &graph),
    CALL(cudaStreamEndCapture_ptsz, stream, &graph),
    CALL(cudaGraphInstantiate, &executable, graph, 0),
    CALL(cudaGraphInstantiateWithFlags, &executable, graph, 0),
    CALL(cudaGraphInstantiateWithParams, &executable, graph, &instantiate),
    CALL(cudaGraphInstantiateWithParams_ptsz, &executable, graph, &instantiate),
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
    CALL(cudaGraphLaunch, executable, stream),
    CALL(cudaGraphLaunch_ptsz, executable, stream),
    CALL(cudaGraphExecDestroy, executable),
    CALL(cudaGraphDestroy, graph),
    CALL(cudaLaunchKernel, kernel, one, one, nullptr, 0, stream),
    CALL(cudaLaunchKernel_ptsz, kernel, one, one, nullptr, 0, stream),
    CALL(__cudaLaunchKernel, nullptr, one, one, nullptr, 0, stream),
    CALL(__cudaLaunchKernel_ptsz, nullptr, one, one, nullptr, 0, stream),
    CALL(cudaLaunchKernelExC, &launch, kernel, nullptr),
    CALL(cudaLaunchKernelExC_ptsz, &launch, kernel, nullptr),
    CALL(cudaLaunchCooperativeKernel, kernel, one, one, nullptr, 0, stream),
    CALL(cudaLaunchCooperativeKernel_ptsz, kernel, one, one, nullptr, 0, stream),
    CALL(cudaLaunchHostFunc, stream, &host_function, nullptr),
    CALL(cudaLaunchHostFunc_ptsz, stream, &host_function, nullptr),
    CALL(cudaStreamAddCallback, stream, &stream_callback, nullptr, 0),
    CALL(cudaStreamAddCallback_ptsz, stream, &stream_callback, nullptr, 0),
    CALL(cudaEventRecord, event, stream),
    CALL(cudaEventRecord_ptsz, event, stream),
    CALL(cudaEventRecordWithFlags, event, stream, 0),
    CALL(cudaEventRecordWithFlags_ptsz, event, stream, 0),
    CALL(cudaStreamWaitEvent, stream, event, 0),
    CALL(cudaStreamWaitEvent_ptsz, stream, event, 0),
    CALL(cudaStreamSynchronize, stream),
    CALL(cudaStreamSynchronize_ptsz, stream),
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
