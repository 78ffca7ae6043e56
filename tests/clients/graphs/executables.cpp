// Executables that are changed, updated and launched from anywhere.
#include <thread>
#include <vector>

#include "situations.h"

namespace {

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
           SITUATION(update) SITUATION(update_in_every_step) SITUATION(instantiated_twice)
               SITUATION(launched_from_threads) SITUATION(launched_by_the_device)
                   SITUATION(many_alive) SITUATION(many_different) SITUATION(too_many_different))
