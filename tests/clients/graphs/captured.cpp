// Graphs that are captured.
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "situations.h"

extern "C" {
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
// This is new in CUDA 13.3; the runtime that is linked here may be older.
struct cudaGraphRecaptureCallbackData;
[[gnu::weak]] cudaError_t cudaStreamBeginRecaptureToGraph(cudaStream_t, cudaStreamCaptureMode,
                                                          cudaGraph_t,
                                                          cudaGraphRecaptureCallbackData*);
}

namespace {

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
  upload(500, side);  // no longer in a capture
  run(graph, 3);
}

void grouped_calls() {
  begin();
  OK(ncclGroupStart());
  gather(16);
  gather(32);
  OK(ncclGroupEnd());
  run(end(), 3);
}

void captures_that_fail() {
  cudaGraph_t graph = nullptr;
  begin();
  upload(100);
  REFUSED(cudaStreamSynchronize(stream));  // invalidates the capture
  REFUSED(cudaMemcpyAsync(device, nullptr, 8, cudaMemcpyHostToDevice, stream));
  REFUSED(cudaStreamEndCapture(stream, &graph));
  cudaGetLastError();
  begin();
  OK(cudaEventRecord(forked, stream));
  OK(cudaStreamWaitEvent(side, forked, 0));
  upload(200, side);  // is never joined
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

// The second capture replaces the contents of the graph.
void captured_again() {
  cudaGraph_t graph = captured();
  run(graph, 2);
  OK(cudaStreamBeginRecaptureToGraph(stream, cudaStreamCaptureModeThreadLocal, graph, nullptr));
  upload(300);
  gather(32);
  OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, 3);
}

// A node is put into the capture by hand, and the stream goes on after it.
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
}

// The launched graph becomes a part of what is captured.
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

// Captures on the calling thread's own default stream.
void own_default_stream() {
  OK(cudaStreamBeginCapture_ptsz(nullptr, cudaStreamCaptureModeThreadLocal));
  OK(cudaMemcpyAsync_ptsz(device, host, 100, cudaMemcpyHostToDevice, nullptr));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture_ptsz(nullptr, &graph));
  cudaGraphExec_t executable = instantiate(graph);
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch_ptsz(executable, nullptr));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
}

// Dies during a capture, after launches of another graph.
void killed() {
  cudaGraphExec_t executable = instantiate(captured());
  launch(executable, 5);
  begin();
  upload(700);
  kill(getpid(), SIGKILL);
}

// Handles are often reused at once, each time for something else.
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

// The library destroys the graph of a failed capture, and its handles are soon another's.
void handles_of_failed_captures() {
  for (int i = 0; i < 50; ++i) {
    cudaGraph_t graph = nullptr;
    begin();
    gather(16);
    upload(100);
    REFUSED(cudaStreamSynchronize(stream));
    REFUSED(cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    graph = empty();
    for (size_t bytes : {1, 2, 3}) add_upload(graph, bytes);
    run(graph, 1);
    OK(cudaGraphDestroy(graph));
  }
}

}  // namespace

SITUATIONS(captured_situations,
           SITUATION(capture_and_launch) SITUATION(several_streams) SITUATION(grouped_calls)
               SITUATION(captures_that_fail) SITUATION(captured_into_a_graph)
                   SITUATION(captured_again) SITUATION(dependencies_updated)
                       SITUATION(launched_into_a_capture) SITUATION(own_default_stream)
                           SITUATION(killed) SITUATION(handles_reused)
                               SITUATION(handles_of_failed_captures))
