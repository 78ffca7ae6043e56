// Stream capture and graphs: captured work does not run at once, but with every launch.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>

#include "test/catch.h"

namespace {

struct Fixture {
  cudaStream_t stream = nullptr, side = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;
  int *device = nullptr, *pinned = nullptr;  // two ints each

  Fixture() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    void *d = nullptr, *p = nullptr;
    REQUIRE(cudaMalloc(&d, 2 * sizeof(int)) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&p, 2 * sizeof(int), cudaHostAllocDefault) == cudaSuccess);
    device = static_cast<int*>(d);
    pinned = static_cast<int*>(p);
  }
  ~Fixture() {
    cudaStreamDestroy(stream);
    cudaStreamDestroy(side);
    cudaEventDestroy(forked);
    cudaEventDestroy(joined);
    cudaFree(device);
    cudaFreeHost(pinned);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void begin() {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  }
  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    return graph;
  }
  void copy_in(cudaStream_t on) {
    REQUIRE(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, on) ==
            cudaSuccess);
  }
  static void increment(void* number) { ++*static_cast<int*>(number); }
};

void launch(cudaGraph_t graph, cudaStream_t stream, int times) {
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int i = 0; i < times; ++i) REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
}

size_t node_count(cudaGraph_t graph) {
  size_t count = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
  return count;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "the runtime brings the driver along") {
  CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr);
}

TEST_CASE_METHOD(Fixture, "captured work runs once per launch and not when it is captured") {
  int calls = 0;
  *pinned = 5;
  begin();
  copy_in(stream);
  REQUIRE(cudaLaunchHostFunc(stream, increment, &calls) == cudaSuccess);
  cudaGraph_t graph = end();
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(calls == 0);
  REQUIRE(*device == 0);
  REQUIRE(node_count(graph) == 2);
  *pinned = 6;  // a launch copies what is there then
  launch(graph, stream, 3);
  REQUIRE(calls == 3);
  REQUIRE(*device == 6);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "a stream joins the capture through an event and is joined by another") {
  *pinned = 9;
  begin();
  copy_in(stream);
  REQUIRE(cudaEventRecord(forked, stream) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(side, forked, 0) == cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  REQUIRE(cudaStreamIsCapturing(side, &status) == cudaSuccess);
  REQUIRE(status == cudaStreamCaptureStatusActive);
  REQUIRE(cudaMemcpyAsync(device + 1, device, sizeof(int), cudaMemcpyDeviceToDevice, side) ==
          cudaSuccess);
  REQUIRE(cudaEventRecord(joined, side) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(stream, joined, 0) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(pinned + 1, device + 1, sizeof(int), cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  cudaGraph_t graph = end();
  REQUIRE(cudaStreamIsCapturing(side, &status) == cudaSuccess);
  REQUIRE(status == cudaStreamCaptureStatusNone);
  launch(graph, stream, 1);
  REQUIRE(pinned[1] == 9);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "a capture with a stream that was not joined fails") {
  begin();
  copy_in(stream);
  REQUIRE(cudaEventRecord(forked, stream) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(side, forked, 0) == cudaSuccess);
  copy_in(side);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
  REQUIRE(graph == nullptr);
}

TEST_CASE_METHOD(Fixture, "a call that waits invalidates the capture") {
  begin();
  REQUIRE(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  REQUIRE(graph == nullptr);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "an allocation is allowed beside a capture only in relaxed mode") {
  void* memory = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  begin();
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  REQUIRE(cudaMalloc(&memory, 16) == cudaSuccess);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  void* refused = nullptr;
  REQUIRE(cudaMalloc(&refused, 16) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  REQUIRE(cudaFree(memory) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "a clone outlives its original, and a child graph runs with its parent") {
  int calls = 0;
  begin();
  REQUIRE(cudaLaunchHostFunc(stream, increment, &calls) == cudaSuccess);
  cudaGraph_t original = end(), clone = nullptr, parent = nullptr;
  REQUIRE(cudaGraphClone(&clone, original) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(original) == cudaSuccess);
  REQUIRE(cudaGraphCreate(&parent, 0) == cudaSuccess);
  cudaGraphNode_t first = nullptr, second = nullptr;
  REQUIRE(cudaGraphAddChildGraphNode(&first, parent, nullptr, 0, clone) == cudaSuccess);
  REQUIRE(cudaGraphAddChildGraphNode(&second, parent, &first, 1, clone) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(clone) == cudaSuccess);
  launch(parent, stream, 2);
  REQUIRE(calls == 4);
  REQUIRE(cudaGraphDestroy(parent) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "an upload runs nothing, and an update needs the same nodes") {
  begin();
  copy_in(stream);
  cudaGraph_t graph = end(), empty = nullptr;
  REQUIRE(cudaGraphCreate(&empty, 0) == cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  *pinned = 1;
  REQUIRE(cudaGraphUpload(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(*device == 0);
  cudaGraphExecUpdateResultInfo result;
  REQUIRE(cudaGraphExecUpdate(exec, graph, &result) == cudaSuccess);
  REQUIRE(cudaGraphExecUpdate(exec, empty, &result) == cudaErrorGraphExecUpdateFailure);
  REQUIRE(result.result == cudaGraphExecUpdateErrorTopologyChanged);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(*device == 1);
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(empty) == cudaSuccess);
}

TEST_CASE_METHOD(Fixture, "of a conditional node that body runs which its handle chooses") {
  const unsigned value = GENERATE(0, 1, 2, 3);
  const bool is_switch = GENERATE(true, false);
  int calls[3] = {};
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaGraphCreate(&graph, 0) == cudaSuccess);
  cudaGraphConditionalHandle handle = 0;
  REQUIRE(cudaGraphConditionalHandleCreate(&handle, graph, value, cudaGraphCondAssignDefault) ==
          cudaSuccess);
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = is_switch ? cudaGraphCondTypeSwitch : cudaGraphCondTypeIf;
  params.conditional.size = is_switch ? 3 : 2;
  cudaGraphNode_t node = nullptr;
  REQUIRE(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) == cudaSuccess);
  for (unsigned i = 0; i < params.conditional.size; ++i) {
    cudaGraphNode_t inside = nullptr;
    const cudaHostNodeParams host = {increment, &calls[i]};
    REQUIRE(cudaGraphAddHostNode(&inside, params.conditional.phGraph_out[i], nullptr, 0, &host) ==
            cudaSuccess);
  }
  launch(graph, stream, 2);
  for (unsigned i = 0; i < 3; ++i) {
    const bool chosen = is_switch ? i == value : i == (value != 0 ? 0U : 1U);
    REQUIRE(calls[i] == (chosen ? 2 : 0));
  }
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}
