// Threads that meet at a stream, and contexts that go, on a driver that knows what must not be done
// (instant/instant_cuda.cpp). With TPROF_TIMING=events.
//
//   device_edges held CALL       another thread's mark stands in the driver, and CALL is made
//   device_edges capture HOW WHO a capture begins by HOW while WHO is about to record an event
//   device_edges reset HOW WHEN  a context goes by HOW, 40 times
//
// Prints what was misused, and which part of a second the thread took in CALL.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "instant/instant_cuda.h"
#include "interpose/user/tprof.h"

namespace {

char g_from[64];
char g_to[64];
cudaStream_t g_stream;
// No event of a stream that captures: the instant library does not look at it.
const cudaEvent_t g_captured = reinterpret_cast<cudaEvent_t>(&g_from);

void copy(cudaStream_t stream) {
  if (cudaMemcpyAsync(g_to, g_from, sizeof g_from, cudaMemcpyHostToDevice, stream) != cudaSuccess)
    std::_Exit(99);
}
void launch(cudaStream_t stream) {
  cudaLaunchKernel(g_from, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream);
}
void until_one_stands() {
  while (instant_standing() == 0) usleep(100);
}
double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

using Calls = std::map<std::string, std::function<void()>>;
const Calls kBegins = {
    {"cudaStreamBeginCapture",
     [] { cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeGlobal); }},
    {"cudaStreamBeginCaptureToGraph",
     [] {
       cudaStreamBeginCaptureToGraph(g_stream, nullptr, nullptr, nullptr, 0,
                                     cudaStreamCaptureModeThreadLocal);
     }},
    {"cudaStreamWaitEvent", [] { cudaStreamWaitEvent(g_stream, g_captured, 0); }},
    {"cuStreamBeginCapture",
     [] { cuStreamBeginCapture(g_stream, CU_STREAM_CAPTURE_MODE_RELAXED); }},
    {"cuStreamBeginCaptureToGraph",
     [] {
       cuStreamBeginCaptureToGraph(g_stream, nullptr, nullptr, nullptr, 0,
                                   CU_STREAM_CAPTURE_MODE_GLOBAL);
     }},
    {"cuStreamWaitEvent", [] { cuStreamWaitEvent(g_stream, g_captured, 0); }},
};
const Calls kOthers = {
    {"cudaStreamDestroy", [] { cudaStreamDestroy(g_stream); }},
    {"cudaLaunchKernel", [] { launch(g_stream); }},
    {"cudaMemcpyAsync", [] { copy(g_stream); }},
    {"cudaDeviceSynchronize", [] { cudaDeviceSynchronize(); }},
    {"cudaEventRecord", [] { cudaEventRecord(nullptr, g_stream); }},
    {"cudaDeviceReset", [] { cudaDeviceReset(); }},
};

// A capture was seen before: from then on a stream may join one.
void begin() {
  cudaSetDevice(0);
  cudaStreamCreate(&g_stream);
  copy(g_stream);
  cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeRelaxed);
  cudaStreamEndCapture(g_stream, nullptr);
  launch(g_stream);
  launch(g_stream);
}

int held(const std::string& call) {
  begin();
  instant_stands("cuEventRecord");
  std::thread other([] { cudaDeviceSynchronize(); });  // marks the stream's end
  until_one_stands();
  const double before = cpu_s();
  (kBegins.contains(call) ? kBegins : kOthers).at(call)();
  std::printf("cpu %.3f\n", cpu_s() - before);
  instant_stands(nullptr);
  other.join();
  cudaDeviceSynchronize();
  return 0;
}

int capture(const std::string& how, const std::string& who) {
  begin();
  const auto begin_capture = kBegins.at(how);
  if (who == "scope") {
    tprof_push_on("scope", nullptr, g_stream);
    begin_capture();
    tprof_pop(nullptr);
  } else {
    // The call stands behind our question whether the stream captures, or before the real one.
    instant_stands(who == "end" ? "cudaMemcpyAsync" : "cuStreamGetCtx");
    std::thread other([&] { who == "mark" ? void(cudaDeviceSynchronize()) : copy(g_stream); });
    until_one_stands();
    std::thread goes_on([] {
      usleep(30'000);  // as long as the capture may take to begin, if nothing keeps it
      instant_stands(nullptr);
    });
    begin_capture();
    goes_on.join();
    other.join();
  }
  std::printf("captured %ld\n", instant_captured());
  return 0;
}

// `made`: a context of the program's own.
void let_go(const std::string& how, CUcontext made) {
  if (how == "cudaDeviceReset") cudaDeviceReset();
  if (how == "cuDevicePrimaryCtxReset") cuDevicePrimaryCtxReset(1);
  if (how == "cuDevicePrimaryCtxRelease") cuDevicePrimaryCtxRelease(1);
  if (how == "cuCtxDestroy") cuCtxDestroy(made);
}

int reset(const std::string& how, const std::string& when) {
  std::atomic<bool> over{false};
  std::thread other([&] {  // on a device that stays, all the time
    cudaSetDevice(0);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    for (int i = 0; !over || i < 100; ++i) {
      launch(stream);
      copy(stream);
      usleep(500);
    }
  });
  for (int i = 0; i < 40; ++i) {
    cudaSetDevice(1);
    CUcontext made = nullptr;
    if (how == "cuCtxDestroy") made = instant_context(1);
    cudaStreamCreate(&g_stream);
    if (when == "scope") tprof_push_on("scope", nullptr, g_stream);
    for (int n = 0; n < 15; ++n) {
      launch(g_stream);
      copy(g_stream);
    }
    if (when == "captures") cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeRelaxed);
    if (when == "idle") usleep(20'000);
    let_go(how, made);
    if (when == "scope") tprof_pop(nullptr);
  }
  over = true;
  other.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  int code = 99;
  if (mode == "held") code = held(argv[2]);
  if (mode == "capture") code = capture(argv[2], argv[3]);
  if (mode == "reset") code = reset(argv[2], argv[3]);
  std::printf("misused %ld\n", instant_misused());
  return code;
}
