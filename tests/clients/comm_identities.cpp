// Makes many communicators and streams in one process. Some communicators are made where the
// library does not see it. Which communicator is which has to be right in the trace, or said to be
// unknown.
//
//   comm_identities race N     N non-blocking children, each first used by two threads at once
//                   waiting N  N non-blocking children, all made before the first is used
//                   many N     N handles (N even), made and destroyed eight at a time, the last 60
//                              three at a time; the last 4,000 are used
//                   unseen N   N communicators made past the dynamic linker, each first used by two
//                              threads at once, and a child of the last
//                   streams N  a collective and a copy on each of N streams
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <barrier>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"

namespace {

float* g_data = nullptr;

bool accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

void settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    OK(ncclCommGetAsyncError(comm, &state));
    std::this_thread::yield();
  }
  OK(state);
}

void gather(ncclComm_t comm, cudaStream_t stream = nullptr) {
  MUST(accepted(ncclAllGather(g_data, g_data + 8, 5, ncclFloat, comm, stream)));
}

ncclComm_t make(ncclConfig_t* config,
                decltype(&ncclCommInitRankConfig) init = &ncclCommInitRankConfig) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  OK(ncclGetUniqueId(&id));
  MUST(accepted(init(&comm, 1, id, 0, config)));
  settle(comm);
  return comm;
}

void wait_for_child(ncclComm_t parent, ncclComm_t* place) {
  settle(parent);
  while (*static_cast<ncclComm_t volatile*>(place) == nullptr) std::this_thread::yield();
  settle(*place);
}

ncclComm_t child_of(ncclComm_t parent, ncclConfig_t* config, ncclComm_t* place) {
  MUST(accepted(ncclCommSplit(parent, 0, 0, place, config)));
  wait_for_child(parent, place);
  return *place;
}

// Calls f(i) for each i below n on two threads at once.
template <typename F>
void on_two_threads(int n, std::barrier<>& barrier, const F& f) {
  const auto run = [&] {
    for (int i = 0; i < n; ++i) {
      barrier.arrive_and_wait();
      f(i);
    }
  };
  std::thread other(run);
  run();
  other.join();
}

void many(int n) {
  ncclComm_t comm[8];
  for (int left = n, size = 8; left > 0; left -= size) {
    if (left <= 60) size = 3;
    OK(ncclCommInitAll(comm, size, nullptr));
    ncclGroupStart();
    for (int i = 0; i < size && left <= 4000; ++i) gather(comm[i]);
    OK(ncclGroupEnd());
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < size; ++i) OK(ncclCommDestroy(comm[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  MUST(argc == 3);
  const std::string_view mode = argv[1];
  const int n = std::atoi(argv[2]);
  void* memory = nullptr;
  OK(cudaMalloc(&memory, 4096));
  g_data = static_cast<float*>(memory);
  if (mode == "many") {
    many(n);
    return 0;
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto* past = reinterpret_cast<decltype(&ncclCommInitRankConfig)>(
      dlsym(dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY), "ncclCommInitRankConfig"));
  std::barrier barrier(2);
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(n));
  const auto use = [&](int i) { gather(comms[static_cast<std::size_t>(i)]); };
  if (mode == "unseen") {
    MUST(past != nullptr);
    for (ncclComm_t& comm : comms) comm = make(&config, past);
    on_two_threads(n, barrier, use);
    ncclComm_t child = nullptr;
    gather(child_of(comms.back(), &config, &child));
    return 0;
  }
  config.commName = "parent";
  ncclComm_t parent = make(&config);
  if (mode == "streams") {
    for (int i = 0; i < n; ++i) {
      cudaStream_t stream = nullptr;
      OK(cudaStreamCreate(&stream));
      gather(parent, stream);
      float there = 0;
      OK(cudaMemcpyAsync(g_data, &there, sizeof there, cudaMemcpyHostToDevice, stream));
    }
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
  }
  if (mode == "race") {
    for (ncclComm_t& comm : comms) {
      config.commName = "child";
      child_of(parent, &config, &comm);
      const auto i = static_cast<int>(&comm - comms.data());
      on_two_threads(1, barrier, [&](int) { use(i); });
    }
    return 0;
  }
  MUST(mode == "waiting");
  for (std::size_t i = 0; i < comms.size(); ++i) {
    const std::string name = "child " + std::to_string(i);
    config.commName = name.c_str();
    child_of(parent, &config, &comms[i]);
  }
  for (std::size_t i = 0; i < comms.size(); ++i) use(static_cast<int>(i));
  return 0;
}
