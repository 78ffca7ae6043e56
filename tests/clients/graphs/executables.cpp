// Executables that are changed, updated and launched from anywhere.
#include <thread>
#include <vector>

#include "situations.h"

namespace {

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

void nodes_disabled() {
  cudaGraph_t graph = captured();
  cudaGraphNode_t copy = copy_in(graph);
  cudaGraphExec_t executable = instantiate(graph);
  for (int step = 0; step < 6; ++step) {
    OK(cudaGraphNodeSetEnabled(executable, copy, step % 2 == 0 ? 0 : 1));
    launch(executable, 10);
  }
  OK(cudaGraphNodeSetEnabled(executable, copy, 0));
  change(executable, copy, 500);  // takes effect when it is enabled again
  launch(executable, 1);
  OK(cudaGraphNodeSetEnabled(executable, copy, 1));
  launch(executable, 1);
  OK(cudaGraphNodeSetEnabled(executable, copy, 0));
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, graph, &result));  // leaves it disabled
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

void launched_by_the_device() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = nullptr;
  OK(cudaGraphInstantiateWithFlags(&executable, graph, cudaGraphInstantiateFlagDeviceLaunch));
  launch(executable, 2);
}

// A node disabled in an executable is also disabled in a capture of its launch, and only there.
void disabled_in_a_child() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = instantiate(graph);
  OK(cudaGraphNodeSetEnabled(executable, copy_in(graph), 0));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                   cudaStreamCaptureModeThreadLocal));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t whole = instantiate(graph);
  launch(whole, 2);
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(whole, graph, &result));
  launch(whole, 3);
}

// Only CUDA knows which node of the second graph stands for the disabled one.
void disabled_and_updated() {
  cudaGraph_t graph = captured();
  cudaGraphExec_t executable = instantiate(graph);
  OK(cudaGraphNodeSetEnabled(executable, copy_in(graph), 0));
  launch(executable, 2);
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, captured(), &result));
  launch(executable, 3);
}

// Makes executables that all live to the end, and launches each once: `kinds` do something else.
void alive(std::size_t executables, std::size_t kinds) {
  constexpr std::size_t kSizes = 1000;
  for (std::size_t i = 0; i < executables; ++i) {
    const std::size_t kind = i % kinds;
    begin();
    upload(1 + kind % kSizes);
    gather(1 + kind / kSizes);
    cudaGraph_t graph = end();
    OK(cudaGraphLaunch(instantiate(graph), stream));
    OK(cudaGraphDestroy(graph));
  }
  OK(cudaStreamSynchronize(stream));
}
void many_alive() {
  alive(40'000, 1);
}
void many_different() {
  alive(20'000, 20'000);
}
void too_many_different() {
  alive(36'000, 36'000);
}

}  // namespace

SITUATIONS(executable_situations,
           SITUATION(child_changed_in_executable) SITUATION(update) SITUATION(update_in_every_step)
               SITUATION(nodes_disabled) SITUATION(instantiated_twice)
                   SITUATION(launched_from_threads) SITUATION(launched_by_the_device)
                       SITUATION(disabled_in_a_child) SITUATION(disabled_and_updated)
                           SITUATION(many_alive) SITUATION(many_different)
                               SITUATION(too_many_different))
