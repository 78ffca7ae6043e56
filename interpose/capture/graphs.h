// CUDA graphs: which capture a call belongs to, which executable runs which captured graph.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace tprof::graphs {

// A capture has begun in this process at some time. Until then no call asks about captures.
extern std::atomic<bool> g_any_capture;

// The captured graph that calls on `stream` go into now, or 0: asked of the driver, whose answers
// never touch the runtime's last error.
std::uint32_t capturing_slow(cudaStream_t stream);
inline std::uint32_t capturing(cudaStream_t stream) {
  return g_any_capture.load(std::memory_order_relaxed) ? capturing_slow(stream) : 0;
}

// Around cudaStreamEndCapture: the capture's number before, its graph's handle after.
std::uint32_t ending(cudaStream_t stream);
void ended(std::uint32_t captured, cudaGraph_t graph);

void instantiated(cudaGraphExec_t executable, cudaGraph_t graph);
std::uint32_t executable(cudaGraphExec_t handle);  // 0: not known
void destroyed(cudaGraph_t graph);
void destroyed(cudaGraphExec_t executable);
void forget_all();  // in the child of a fork

}  // namespace tprof::graphs
