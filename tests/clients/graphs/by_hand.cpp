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
  change(copy_in(twin), 700);  // in the clone only
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
  // The node has a graph of its own: a change in that graph shows in the node.
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

SITUATIONS(by_hand_situations,
           SITUATION(clone) SITUATION(child_graphs) SITUATION(children_by_add_node)
               SITUATION(copies_by_hand) SITUATION(boxes_by_hand) SITUATION(nodes_removed)
                   SITUATION(conditional_node))
