// Cancels threads while they call, before the rest of the program goes on calling. Prints how many
// all-gathers of 8 float32 it made.
//
//   cancelled MODE N
//   MODE: waiting  N threads, each cancelled before its call, which is no cancellation point; the
//                  first call is the first of the process
//         anywhere N threads, cancelled wherever they are in calls that need no memory of the
//                  library
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

std::atomic<bool> g_here{false};
std::atomic<bool> g_cancelled{false};
unsigned long g_calls = 0;
char g_memory[64];

void require(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "cancelled: failed in line %d\n", line);
  std::_Exit(99);
}

void call() {
  static ncclComm_t comm = nullptr;
  if (comm == nullptr) {
    ncclUniqueId id;
    require(ncclGetUniqueId(&id) == ncclSuccess);
    require(ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess);
  }
  require(ncclAllGather(g_memory, g_memory, 8, ncclFloat32, comm, nullptr) == ncclSuccess);
  ++g_calls;
}

void* call_when_cancelled(void*) {
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  g_here = true;
  while (!g_cancelled) sched_yield();
  pthread_setcancelstate(before, nullptr);
  call();
  pthread_testcancel();
  require(false);
  return nullptr;
}

void* call_until_cancelled(void*) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (;;) {
    cudaHostRegister(g_memory, sizeof g_memory, 0);
    g_here = true;
    cudaHostUnregister(g_memory);
  }
}

void cancel_one(void* (*thread_function)(void*), int patience) {
  g_here = g_cancelled = false;
  pthread_t thread;
  require(pthread_create(&thread, nullptr, thread_function, nullptr) == 0);
  while (!g_here) sched_yield();
  for (int i = 0; i < patience; ++i) asm volatile("");
  require(pthread_cancel(thread) == 0);
  g_cancelled = true;
  // The thread's result is not checked: some versions of glibc forget it where
  // pthread_setcancelstate cancels.
  require(pthread_join(thread, nullptr) == 0);
}

}  // namespace

int main(int, char** argv) {
  const bool anywhere = std::string_view(argv[1]) == "anywhere";
  const int n = std::atoi(argv[2]);
  for (int i = 0; i < n; ++i) {
    cancel_one(anywhere ? call_until_cancelled : call_when_cancelled, 20 * i);
    cudaHostRegister(g_memory, sizeof g_memory, 0);
    cudaHostUnregister(g_memory);
    call();
  }
  std::printf("calls %lu\n", g_calls);
}
