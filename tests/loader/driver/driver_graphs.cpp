// driver_graphs SITUATION: CUDA graphs that are captured, built and changed through the driver.
// Without an argument: the names of the situations. Fails by line.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// cuda.h declares the twins by a macro only.
extern "C" {
decltype(cuStreamBeginCapture) cuStreamBeginCapture_v2_ptsz;
decltype(cuStreamEndCapture) cuStreamEndCapture_ptsz;
decltype(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
decltype(cuGraphLaunch) cuGraphLaunch_ptsz;
}

namespace {

void check(bool right, const char* what, int line) {
  if (right) return;
  std::printf("line %d: %s\n", line, what);
  std::exit(1);
}
#define OK(call) check((call) == CUDA_SUCCESS, #call, __LINE__)

constexpr size_t kSize = 4096;
CUdeviceptr device;
void* host;
CUstream stream;

void set_up() {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuMemAlloc(&device, kSize));
  OK(cuMemHostAlloc(&host, kSize, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

// Stream 0 of the twins is the calling thread's own.
void own_default_stream() {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuMemcpyHtoDAsync_v2_ptsz(device, host, 100, nullptr));
  OK(cuStreamEndCapture_ptsz(nullptr, &graph));
  OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cuGraphLaunch_ptsz(executable, nullptr));
}

struct Situation {
  const char* name;
  void (*run)();
};
#define SITUATIONS(X) X(own_default_stream)
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
    OK(cuCtxSynchronize());
    return 0;
  }
  return argc == 1 ? 0 : 2;
}
