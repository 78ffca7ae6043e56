// graphs SITUATION: CUDA graphs that are captured, built and changed in every way, with copies and
// an all-gather in them. Without an argument: the names of the situations. Fails by line where a
// call did not do what it should have.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

extern "C" void __cudaRegisterVar(void** module, char* host, char* device, const char* name,
                                  int external, size_t size, int constant, int global);
extern "C" {
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
}

namespace {

void check(bool right, const char* what, int line) {
  if (right) return;
  std::printf("line %d: %s\n", line, what);
  std::fflush(stdout);
  std::_Exit(1);
}
#define OK(call) check((call) == cudaSuccess, #call, __LINE__)
#define NCCL_OK(call) check((call) == ncclSuccess, #call, __LINE__)
#define REFUSED(call) check((call) != cudaSuccess, #call, __LINE__)

constexpr size_t kSize = 4096;
char *device, *host;
cudaStream_t stream, side;
cudaEvent_t forked, joined;
ncclComm_t comm;
char symbol;

void set_up() {
  // As the real runtime does; the stand-in's has no need of it.
  check(dlopen("libcuda.so.1", RTLD_NOW) != nullptr, "libcuda.so.1", __LINE__);
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
  NCCL_OK(ncclGetUniqueId(&id));
  NCCL_OK(ncclCommInitRank(&comm, 1, id, 0));
}

void upload(size_t bytes, cudaStream_t on = stream) {
  OK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, on));
}
void download(size_t bytes, cudaStream_t on = stream) {
  OK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, on));
}
void gather(size_t count) {
  NCCL_OK(ncclAllGather(device, device + kSize, count, ncclFloat32, comm, stream));
}

void begin() {
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}
cudaGraph_t end() {
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}
// Most situations begin with this one: 100 B to the device, an all-gather of 16 floats.
cudaGraph_t captured() {
  begin();
  upload(100);
  gather(16);
  return end();
}
cudaGraph_t empty() {
  cudaGraph_t graph = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  return graph;
}
cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  OK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}
void launch(cudaGraphExec_t executable, int times, cudaStream_t on = stream) {
  for (int i = 0; i < times; ++i) OK(cudaGraphLaunch(executable, on));
  OK(cudaStreamSynchronize(on));
}
void run(cudaGraph_t graph, int times) {
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, times);
  OK(cudaGraphExecDestroy(executable));
}
// The only copy node of a graph.
cudaGraphNode_t copy_in(cudaGraph_t graph) {
  cudaGraphNode_t nodes[16];
  size_t count = std::size(nodes);
  OK(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t i = 0; i < count; ++i) {
    cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(nodes[i], &type));
    if (type == cudaGraphNodeTypeMemcpy) return nodes[i];
  }
  check(false, "a copy node", __LINE__);
  return nullptr;
}
cudaGraphNode_t add_upload(cudaGraph_t graph, size_t bytes, cudaGraphNode_t after = nullptr) {
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddMemcpyNode1D(&node, graph, &after, after == nullptr ? 0 : 1, device, host, bytes,
                              cudaMemcpyHostToDevice));
  return node;
}
cudaGraphNode_t add_child(cudaGraph_t graph, cudaGraph_t child) {
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  return node;
}
void change(cudaGraphExec_t executable, cudaGraphNode_t node, size_t bytes) {
  OK(cudaGraphExecMemcpyNodeSetParams1D(executable, node, device, host, bytes,
                                        cudaMemcpyHostToDevice));
}
void change(cudaGraphNode_t node, size_t bytes) {
  OK(cudaGraphMemcpyNodeSetParams1D(node, device, host, bytes, cudaMemcpyHostToDevice));
}

void capture_and_launch() {
  run(captured(), 3);
}

void several_streams() {
  begin();
  upload(100);
  OK(cudaEventRecord(forked, stream));
  OK(cudaStreamWaitEvent(side, forked, 0));
  upload(200, side);
  std::thread([] { download(300, side); }).join();
  gather(16);
  OK(cudaEventRecord(joined, side));
  OK(cudaStreamWaitEvent(stream, joined, 0));
  upload(400);
  cudaGraph_t graph = end();
  upload(500, side);  // in no capture any more
  run(graph, 3);
}

void grouped_calls() {
  begin();
  NCCL_OK(ncclGroupStart());
  gather(16);
  gather(32);
  NCCL_OK(ncclGroupEnd());
  run(end(), 3);
}

void clone() {
  cudaGraph_t original = captured(), twin = nullptr;
  OK(cudaGraphClone(&twin, original));
  cudaGraphExec_t of_original = instantiate(original);
  change(copy_in(twin), 700);  // of the clone only
  OK(cudaGraphDestroy(original));
  run(twin, 2);
  launch(of_original, 3);
  cudaGraphExec_t of_twin = instantiate(twin);
  cudaGraphNode_t node = copy_in(twin);
  change(of_twin, node, 900);
  launch(of_twin, 5);
}

void child_graphs() {
  cudaGraph_t child = captured(), parent = empty(), grandparent = empty();
  add_child(parent, child);
  cudaGraphNode_t second = add_child(parent, child);
  add_upload(parent, 300);
  OK(cudaGraphDestroy(child));
  run(parent, 2);
  // The graph within a node is its own: a change in it shows in the node.
  cudaGraph_t inside = nullptr;
  OK(cudaGraphChildGraphNodeGetGraph(second, &inside));
  change(copy_in(inside), 1000);
  add_upload(inside, 50);
  run(parent, 3);
  add_child(grandparent, parent);
  cudaGraphExec_t executable = instantiate(grandparent);
  OK(cudaGraphDestroyNode(second));
  run(parent, 1);
  launch(executable, 1);
  OK(cudaGraphDestroy(parent));
  OK(cudaGraphDestroy(grandparent));
  launch(executable, 1);
}

void child_changed_in_executable() {
  cudaGraph_t parent = empty();
  cudaGraphNode_t node = add_child(parent, captured());
  cudaGraphExec_t executable = instantiate(parent);
  launch(executable, 2);
  begin();
  upload(1000);
  gather(64);
  cudaGraph_t other = end();
  OK(cudaGraphExecChildGraphNodeSetParams(executable, node, other));
  launch(executable, 3);
  cudaGraph_t inside = nullptr;
  OK(cudaGraphChildGraphNodeGetGraph(node, &inside));
  run(parent, 1);  // the graph itself is as it was
}

void children_by_add_node() {
  cudaGraph_t child = captured(), parent = empty();
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeGraph;
  params.graph.graph = child;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddNode(&node, parent, nullptr, nullptr, 0, &params));
  add_upload(child, 10);  // too late for the parent
  run(parent, 2);
  params.graph.ownership = cudaGraphChildGraphOwnershipMove;
  OK(cudaGraphAddNode(&node, parent, nullptr, nullptr, 0, &params));
  add_upload(child, 20);  // it is within the parent now
  run(parent, 3);
}

void update() {
  cudaGraph_t first = captured();
  cudaGraphExec_t executable = instantiate(first);
  launch(executable, 2);
  begin();
  upload(2000);
  gather(16);
  cudaGraph_t second = end();
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, second, &result));
  OK(cudaGraphDestroy(second));
  launch(executable, 3);
  begin();
  upload(100);
  download(100);
  cudaGraph_t third = end();
  REFUSED(cudaGraphExecUpdate(executable, third, &result));
  cudaGetLastError();
  launch(executable, 4);  // as before
}

void update_in_every_step() {
  cudaGraphExec_t executable = nullptr;
  for (int step = 0; step < 300; ++step) {
    begin();
    upload(step % 3 == 0 ? 1000 : 100);
    gather(16);
    cudaGraph_t graph = end();
    cudaGraphExecUpdateResultInfo result;
    if (executable == nullptr) {
      executable = instantiate(graph);
    } else {
      OK(cudaGraphExecUpdate(executable, graph, &result));
    }
    OK(cudaGraphDestroy(graph));
    launch(executable, 1);
  }
}

void copies_by_hand() {
  __cudaRegisterVar(nullptr, &symbol, nullptr, "symbol", 0, 64, 0, 0);
  cudaGraph_t graph = empty();
  cudaGraphNode_t to = nullptr, from = nullptr;
  cudaGraphNode_t first = add_upload(graph, 100);
  OK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, &first, 1, &symbol, host, 32, 8,
                                    cudaMemcpyHostToDevice));
  OK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, host, &symbol, 16, 0,
                                      cudaMemcpyDeviceToHost));
  REFUSED(
      cudaGraphAddMemcpyNode1D(&to, graph, nullptr, 0, device, nullptr, 8, cudaMemcpyHostToDevice));
  cudaGetLastError();
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 2);
  change(first, 200);
  OK(cudaGraphMemcpyNodeSetParamsToSymbol(to, &symbol, host, 48, 0, cudaMemcpyHostToDevice));
  OK(cudaGraphMemcpyNodeSetParamsFromSymbol(from, host, &symbol, 64, 0, cudaMemcpyDeviceToHost));
  launch(executable, 3);  // as it was instantiated
  run(graph, 5);
  change(executable, first, 300);
  OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, to, &symbol, host, 24, 0,
                                              cudaMemcpyHostToDevice));
  OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, from, host, &symbol, 8, 0,
                                                cudaMemcpyDeviceToHost));
  launch(executable, 7);
  run(graph, 1);
}

cudaMemcpy3DParms box(void* to, void* from, size_t width, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.dstPtr = {to, 64, 64, 4};
  p.srcPtr = {from, 64, 64, 4};
  p.extent = {width, 3, 2};
  p.kind = kind;
  return p;
}

// 6 rows of so many bytes each.
void boxes_by_hand() {
  cudaGraph_t graph = empty();
  cudaMemcpy3DParms p = box(device, host, 10, cudaMemcpyHostToDevice);
  cudaGraphNode_t first = nullptr, second = nullptr;
  OK(cudaGraphAddMemcpyNode(&first, graph, nullptr, 0, &p));
  cudaGraphNodeParams any{};
  any.type = cudaGraphNodeTypeMemcpy;
  any.memcpy.copyParams = box(host, device, 20, cudaMemcpyDefault);
  OK(cudaGraphAddNode(&second, graph, &first, nullptr, 1, &any));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 2);
  p.extent.width = 30;
  OK(cudaGraphMemcpyNodeSetParams(first, &p));
  any.memcpy.copyParams.extent.width = 40;
  OK(cudaGraphNodeSetParams(second, &any));
  run(graph, 3);
  p.extent.width = 50;
  OK(cudaGraphExecMemcpyNodeSetParams(executable, first, &p));
  any.memcpy.copyParams.extent.width = 60;
  OK(cudaGraphExecNodeSetParams(executable, second, &any));
  launch(executable, 5);
}

void nodes_disabled() {
  cudaGraph_t graph = captured();
  cudaGraphNode_t copy = copy_in(graph);
  cudaGraphExec_t executable = instantiate(graph);
  for (int step = 0; step < 6; ++step) {
    OK(cudaGraphNodeSetEnabled(executable, copy, step % 2 == 0 ? 0 : 1));
    launch(executable, 10);
  }
  OK(cudaGraphNodeSetEnabled(executable, copy, 0));
  change(executable, copy, 500);  // shows when it is enabled again
  launch(executable, 1);
  OK(cudaGraphNodeSetEnabled(executable, copy, 1));
  launch(executable, 1);
  OK(cudaGraphNodeSetEnabled(executable, copy, 0));
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, graph, &result));  // leaves it disabled
  launch(executable, 1);
}

void nodes_removed() {
  cudaGraph_t graph = captured();
  cudaGraphNode_t second = add_upload(graph, 300, copy_in(graph));
  cudaGraphExec_t executable = instantiate(graph);
  OK(cudaGraphDestroyNode(copy_in(graph)));
  run(graph, 2);
  OK(cudaGraphDestroyNode(second));
  run(graph, 3);
  launch(executable, 1);
}

void instantiated_twice() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t first = instantiate(graph), second = nullptr;
  OK(cudaGraphInstantiateWithFlags(&second, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphUpload(first, stream));  // runs nothing
  launch(first, 3);
  launch(second, 5);
  OK(cudaGraphExecDestroy(first));
  launch(second, 1);
  OK(cudaGraphExecDestroy(second));
}

void launched_from_threads() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = instantiate(graph);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([executable] { launch(executable, 25); });
    threads.back().join();
  }
  launch(executable, 1);
}

void captures_that_fail() {
  cudaGraph_t graph = nullptr;
  begin();
  upload(100);
  REFUSED(cudaStreamSynchronize(stream));  // makes it invalid
  REFUSED(cudaMemcpyAsync(device, nullptr, 8, cudaMemcpyHostToDevice, stream));
  REFUSED(cudaStreamEndCapture(stream, &graph));
  cudaGetLastError();
  begin();
  OK(cudaEventRecord(forked, stream));
  OK(cudaStreamWaitEvent(side, forked, 0));
  upload(200, side);  // is not joined
  REFUSED(cudaStreamEndCapture(stream, &graph));
  cudaGetLastError();
  upload(300);
  run(captured(), 3);
}

void captured_into_a_graph() {
  cudaGraph_t graph = empty();
  cudaGraphNode_t first = add_upload(graph, 100);
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                   cudaStreamCaptureModeThreadLocal));
  gather(16);
  upload(200);
  OK(cudaStreamEndCapture(stream, &graph));
  run(graph, 2);
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                   cudaStreamCaptureModeThreadLocal));
  upload(300);
  OK(cudaStreamEndCapture(stream, &graph));
  run(graph, 3);
}

// Work put into the capture by hand, and the stream goes on after it.
void dependencies_updated() {
  begin();
  upload(100);
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* after = nullptr;
  size_t count = 0;
  OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &after, nullptr, &count));
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddMemcpyNode1D(&node, graph, after, count, host, device, 200,
                              cudaMemcpyDeviceToHost));
  OK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                         cudaStreamSetCaptureDependencies));
  upload(300);
  graph = end();
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 2);
  change(executable, node, 400);  // it is known which one that is
  launch(executable, 3);
}

// A handle is often reused at once: each time for something else.
void handles_reused() {
  for (int i = 0; i < 50; ++i) {
    begin();
    if (i % 2 == 0) upload(100);
    gather(i % 3 == 0 ? 16 : 32);
    cudaGraph_t graph = end();
    cudaGraphExec_t executable = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    launch(executable, i % 4);
    OK(cudaGraphExecDestroy(executable));
    graph = empty();
    run(graph, 1);
    OK(cudaGraphDestroy(graph));
  }
}

// Becomes a part of what is captured.
void launched_into_a_capture() {
  cudaGraphExec_t inner = instantiate(captured());
  begin();
  upload(300);
  OK(cudaGraphLaunch(inner, stream));
  OK(cudaGraphLaunch(inner, stream));
  cudaGraph_t graph = end();
  run(graph, 5);
  launch(inner, 1);
}

// The calling thread's own default stream.
void own_default_stream() {
  OK(cudaStreamBeginCapture_ptsz(nullptr, cudaStreamCaptureModeThreadLocal));
  OK(cudaMemcpyAsync_ptsz(device, host, 100, cudaMemcpyHostToDevice, nullptr));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture_ptsz(nullptr, &graph));
  cudaGraphExec_t executable = instantiate(graph);
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch_ptsz(executable, nullptr));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
}

// Which runs, and how often, only the device knows: 100 B each time, and what is in the node.
void conditional_node() {
  cudaGraph_t graph = empty();
  add_upload(graph, 100);
  cudaGraphConditionalHandle condition = 0;
  OK(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  run(graph, 1);  // nothing is in it yet: all is counted
  cudaGraph_t body = params.conditional.phGraph_out[0];
  OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                   cudaStreamCaptureModeThreadLocal));
  upload(200);
  OK(cudaStreamEndCapture(stream, &body));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 3);
}

void launched_by_the_device() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = nullptr;
  OK(cudaGraphInstantiateWithFlags(&executable, graph, cudaGraphInstantiateFlagDeviceLaunch));
  launch(executable, 2);
}

// By a pointer that was taken past all preloads.
void made_past_the_wrappers() {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  auto* create = reinterpret_cast<decltype(&cudaGraphCreate)>(dlsym(runtime, "cudaGraphCreate"));
  cudaGraph_t graph = nullptr;
  OK(create(&graph, 0));
  add_upload(graph, 100);
  run(graph, 3);
  run(captured(), 2);
}

// Which node of the second graph stands for the one that is disabled only CUDA knows.
void disabled_and_updated() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = instantiate(graph);
  OK(cudaGraphNodeSetEnabled(executable, copy_in(graph), 0));
  launch(executable, 2);
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, captured(), &result));
  launch(executable, 3);
}

// Dies while a capture goes on, after launches of another graph.
void killed() {
  cudaGraphExec_t executable = instantiate(captured());
  launch(executable, 5);
  begin();
  upload(700);
  kill(getpid(), SIGKILL);
}

struct Situation {
  const char* name;
  void (*run)();
};
#define SITUATIONS(X)            \
  X(capture_and_launch)          \
  X(several_streams)             \
  X(grouped_calls)               \
  X(clone)                       \
  X(child_graphs)                \
  X(child_changed_in_executable) \
  X(children_by_add_node)        \
  X(update)                      \
  X(update_in_every_step)        \
  X(copies_by_hand)              \
  X(boxes_by_hand)               \
  X(nodes_disabled)              \
  X(nodes_removed)               \
  X(instantiated_twice)          \
  X(launched_from_threads)       \
  X(captures_that_fail)          \
  X(captured_into_a_graph)       \
  X(dependencies_updated)        \
  X(handles_reused)              \
  X(launched_into_a_capture)     \
  X(own_default_stream)          \
  X(conditional_node)            \
  X(launched_by_the_device)      \
  X(made_past_the_wrappers)      \
  X(disabled_and_updated)        \
  X(killed)
#define X(name) {#name, name},
constexpr Situation kSituations[] = {SITUATIONS(X)};
#undef X

}  // namespace

int main(int argc, char** argv) {
  for (const Situation& s : kSituations) {
    if (argc == 1) std::printf("%s\n", s.name);
    if (argc != 2 || std::strcmp(argv[1], s.name) != 0) continue;
    set_up();
    s.run();
    NCCL_OK(ncclCommDestroy(comm));
    return 0;
  }
  return argc == 1 ? 0 : 2;
}
