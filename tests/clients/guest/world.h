// Makes what the guest's calls need, and calls whose caller prints what it finds afterwards.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "state.h"

namespace guest {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "guest: %s failed\n", what);
  std::_Exit(99);
}

inline constexpr std::size_t kBytes = 4096;

struct World {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char* from = nullptr;
  char* to = nullptr;
  char host[kBytes] = {};
};

// Makes a call, and prints what its caller finds afterwards.
template <typename F>
void call(const char* name, F&& f) {
  constexpr int kMark = 77;
  std::feclearexcept(FE_ALL_EXCEPT);
  errno = kMark;
  const int result = static_cast<int>(f());
  const int error = errno;
  const std::string floating_point = guest::floating_point();
  std::printf("%s: returned %d, errno %d, last error %d, floating point %s\n", name, result, error,
              cudaPeekAtLastError(), floating_point.c_str());
}

inline void make(World& w) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  w.from = static_cast<char*>(memory);
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) fail("cudaMalloc");
  w.to = static_cast<char*>(memory);
}

inline void copies(World& w) {
  call("cudaMemcpy", [&] { return cudaMemcpy(w.to, w.host, kBytes, cudaMemcpyHostToDevice); });
  call("cudaMemcpyAsync",
       [&] { return cudaMemcpyAsync(w.host, w.to, 64, cudaMemcpyDeviceToHost, w.stream); });
  call("cudaMemcpyAsync, default",
       [&] { return cudaMemcpyAsync(w.host, w.to, 64, cudaMemcpyDefault, w.stream); });
  call("cudaMemcpy2D",
       [&] { return cudaMemcpy2D(w.to, 64, w.host, 64, 32, 8, cudaMemcpyHostToDevice); });
  void* pinned = nullptr;
  call("cudaMallocHost", [&] { return cudaMallocHost(&pinned, 64); });
  call("cudaMemcpy, pinned", [&] { return cudaMemcpy(pinned, w.to, 64, cudaMemcpyDefault); });
  call("cudaFreeHost", [&] { return cudaFreeHost(pinned); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
}

inline std::atomic<int> g_signals{0};

// Handles every signal that can be caught, so that a tracer's signal would be seen.
inline void catch_all() {
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCHLD) continue;
    struct sigaction action {};
    action.sa_handler = [](int) { g_signals.fetch_add(1); };
    sigaction(signal, &action, nullptr);
  }
}

// The program's modes that have files of their own.
int walk();
int children();
int forks(int n);
int forks_at_the_start(int n);

}  // namespace guest
