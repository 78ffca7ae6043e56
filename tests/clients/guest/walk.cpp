// Makes calls of every kind, one after the other, and prints the process's state between them.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <latch>
#include <string>
#include <thread>

#include "world.h"

namespace guest {
namespace {

void world_of_one(World& w) {
  ncclUniqueId id;
  call("ncclGetUniqueId", [&] { return ncclGetUniqueId(&id); });
  call("ncclCommInitRank", [&] { return ncclCommInitRank(&w.comm, 1, id, 0); });
}

void collectives(World& w) {
  call("ncclAllGather",
       [&] { return ncclAllGather(w.from, w.to, 64, ncclFloat32, w.comm, w.stream); });
  call("ncclReduceScatter",
       [&] { return ncclReduceScatter(w.from, w.to, 64, ncclInt32, ncclSum, w.comm, w.stream); });
  call("refused ncclBroadcast",
       [&] { return ncclBroadcast(w.from, w.to, 64, ncclInt8, 5, w.comm, w.stream); });
  call("ncclGroupStart", [] { return ncclGroupStart(); });
  call("grouped ncclSend", [&] { return ncclSend(w.from, 64, ncclInt8, 0, w.comm, w.stream); });
  call("grouped ncclRecv", [&] { return ncclRecv(w.to, 64, ncclInt8, 0, w.comm, w.stream); });
  call("ncclGroupEnd", [] { return ncclGroupEnd(); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
}

void graph(World& w) {
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t executable = nullptr;
  call("cudaStreamBeginCapture",
       [&] { return cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeGlobal); });
  call("captured ncclAllGather",
       [&] { return ncclAllGather(w.from, w.to, 64, ncclFloat32, w.comm, w.stream); });
  call("captured cudaMemcpyAsync",
       [&] { return cudaMemcpyAsync(w.to, w.from, 64, cudaMemcpyDeviceToDevice, w.stream); });
  call("cudaStreamEndCapture", [&] { return cudaStreamEndCapture(w.stream, &captured); });
  call("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&executable, captured, 0); });
  call("cudaGraphLaunch", [&] { return cudaGraphLaunch(executable, w.stream); });
  call("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(w.stream); });
  call("cudaGraphExecDestroy", [&] { return cudaGraphExecDestroy(executable); });
  call("cudaGraphDestroy", [&] { return cudaGraphDestroy(captured); });
}

// Runs a thread with settings of its own, which calls and then waits for the end.
void peculiar_thread(World& w, std::latch& called, std::latch& end) {
  pthread_setname_np(pthread_self(), "peculiar");
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &some, nullptr);
  cpu_set_t first;
  CPU_ZERO(&first);
  sched_getaffinity(0, sizeof first, &first);
  int core = 0;
  while (!CPU_ISSET(core, &first)) ++core;
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  sched_setaffinity(0, sizeof first, &first);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5);
  cudaMemcpy(w.to, w.host, 16, cudaMemcpyHostToDevice);
  called.count_down();
  end.wait();
}

// Prints the number of the next stream, the memory that is left and the active contexts.
void print_device() {
  cudaStream_t next = nullptr;
  unsigned long long id = 0;
  if (cudaStreamCreate(&next) != cudaSuccess || cudaStreamGetId(next, &id) != cudaSuccess) {
    fail("cudaStreamCreate");
  }
  print("device", "number of the next stream", std::to_string(id));
  std::size_t free_bytes = 0;
  std::size_t all = 0;
  cudaMemGetInfo(&free_bytes, &all);
  print("device", "memory left", std::to_string(free_bytes));
  std::string contexts;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  using GetState = int (*)(int, unsigned*, int*);
  const auto state = reinterpret_cast<GetState>(
      driver == nullptr ? nullptr : dlsym(driver, "cuDevicePrimaryCtxGetState"));
  for (int device = 0; state != nullptr; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (state(device, &flags, &active) != 0) break;
    contexts += active != 0 ? "+" : "-";
  }
  print("device", "contexts", contexts);
}

}  // namespace

int walk() {
  std::fesetround(FE_UPWARD);
  umask(027);
  if (dlopen("libcuda.so.1", RTLD_LAZY) == nullptr) fail("dlopen");  // as PyTorch does
  if (chdir("/") != 0) fail("chdir");
  catch_all();
  World w;
  make(w);
  // An error that the program has not looked at yet must still be there when it does.
  call("cudaSetDevice", [] { return cudaSetDevice(99); });
  guest::print_state("before");
  copies(w);
  guest::print_state("after the first calls");
  call("cudaGetLastError", [] { return cudaGetLastError(); });
  call("refused cudaMemcpy",
       [&] { return cudaMemcpy(w.to, w.host, 16, static_cast<cudaMemcpyKind>(9)); });
  world_of_one(w);
  call("cudaGetLastError", [] { return cudaGetLastError(); });
  call("cudaStreamCreate", [&] { return cudaStreamCreate(&w.stream); });
  collectives(w);
  copies(w);
  std::latch called(1);
  std::latch end(1);
  World other;
  make(other);
  std::thread peculiar([&] { peculiar_thread(other, called, end); });
  called.wait();
  guest::print_state("with threads");
  end.count_down();
  peculiar.join();
  graph(w);
  guest::print_state("after the graph");
  print_device();
  guest::print_state("at the end");
  call("ncclCommDestroy", [&] { return ncclCommDestroy(w.comm); });
  call("cudaStreamDestroy", [&] { return cudaStreamDestroy(w.stream); });
  print("at the end", "signals", std::to_string(g_signals.load()));
  std::fputs("guest: a line of its own\n", stderr);
  return 7;
}

}  // namespace guest
