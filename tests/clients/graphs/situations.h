// Building blocks for the situations of `graphs`.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <iterator>

#include "../check.h"

struct Situation {
  const char* name;
  void (*run)();
};
// One list for each file of this folder.
const Situation* captured_situations();
const Situation* by_hand_situations();
const Situation* executable_situations();
const Situation* past_us_situations();
#define SITUATION(name) {#name, name},
#define SITUATIONS(list, ...)                            \
  const Situation* list() {                              \
    static constexpr Situation kAll[] = {__VA_ARGS__{}}; \
    return kAll;                                         \
  }

constexpr size_t kSize = 4096;
inline char *device, *host;
inline cudaStream_t stream, side;
inline cudaEvent_t forked, joined;
inline ncclComm_t comm;

inline void set_up() {
  // Loads the driver as the real runtime does; the stand-in's runtime does not need it.
  MUST(dlopen("libcuda.so.1", RTLD_NOW) != nullptr);
  void* memory = nullptr;
  OK(cudaMalloc(&memory, 2 * kSize));
  device = static_cast<char*>(memory);
  OK(cudaHostAlloc(&memory, kSize, cudaHostAllocDefault));
  host = static_cast<char*>(memory);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  OK(ncclCommInitRank(&comm, 1, id, 0));
}

inline void upload(size_t bytes, cudaStream_t on = stream) {
  OK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, on));
}
inline void download(size_t bytes, cudaStream_t on = stream) {
  OK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, on));
}
inline void gather(size_t count) {
  OK(ncclAllGather(device, device + kSize, count, ncclFloat32, comm, stream));
}

inline void begin() {
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}
inline cudaGraph_t end() {
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}
// Most situations begin with this graph: 100 B to the device, an all-gather of 16 floats.
inline cudaGraph_t captured() {
  begin();
  upload(100);
  gather(16);
  return end();
}
inline cudaGraph_t empty() {
  cudaGraph_t graph = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  return graph;
}
inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  OK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}
inline void launch(cudaGraphExec_t executable, int times, cudaStream_t on = stream) {
  for (int i = 0; i < times; ++i) OK(cudaGraphLaunch(executable, on));
  OK(cudaStreamSynchronize(on));
}
inline void run(cudaGraph_t graph, int times) {
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, times);
  OK(cudaGraphExecDestroy(executable));
}
inline cudaGraphNode_t add_upload(cudaGraph_t graph, size_t bytes,
                                  cudaGraphNode_t after = nullptr) {
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddMemcpyNode1D(&node, graph, &after, after == nullptr ? 0 : 1, device, host, bytes,
                              cudaMemcpyHostToDevice));
  return node;
}
