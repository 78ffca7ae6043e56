// Graphs that are made and changed by hand.
#include "situations.h"

extern "C" void __cudaRegisterVar(void** module, char* host, char* device, const char* name,
                                  int external, size_t size, int constant, int global);

namespace {

char symbol;

void clone() {
  cudaGraph_t original = captured(), twin = nullptr;
  OK(cudaGraphClone(&twin, original));
  cudaGraphExec_t of_original = instantiate(original);
  OK(cudaGraphDestroy(original));
  run(twin, 2);
  launch(of_original, 3);
}

void child_graph() {
  cudaGraph_t parent = empty();
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, captured()));
  add_upload(parent, 300);
  run(parent, 2);
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
  run(graph, 5);
}

cudaMemcpy3DParms box(void* to, void* from, size_t width, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.dstPtr = {to, 64, 64, 4};
  p.srcPtr = {from, 64, 64, 4};
  p.extent = {width, 3, 2};
  p.kind = kind;
  return p;
}

// Each box has 6 rows of the given number of bytes.
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
}

// Only the device knows whether the node's body runs, and how often. Each launch copies 100 B
// besides what the body copies.
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
  run(graph, 1);  // its body is still empty: all is counted
  cudaGraph_t body = params.conditional.phGraph_out[0];
  OK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                   cudaStreamCaptureModeThreadLocal));
  upload(200);
  OK(cudaStreamEndCapture(stream, &body));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 3);
}

}  // namespace

SITUATIONS(by_hand_situations, SITUATION(clone) SITUATION(child_graph) SITUATION(copies_by_hand)
                                   SITUATION(boxes_by_hand) SITUATION(conditional_node))
