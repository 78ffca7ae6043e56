// The lives of communicators on one rank: named, non-blocking, split before the child is there,
// aborted, made again at the same address; groups that are nested, simulated, refused.
// Prints how many of the fifty short-lived communicators had the address of one before them.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

namespace {

float* g_data = nullptr;

void must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "comm_life: %s\n", what);
  std::_Exit(1);
}

bool accepted(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

void settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    must(ncclCommGetAsyncError(comm, &state) == ncclSuccess, "ncclCommGetAsyncError");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  must(state == ncclSuccess, "a communicator that is ready");
}

ncclComm_t make(ncclConfig_t* config) {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  must(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
  must(accepted(ncclCommInitRankConfig(&comm, 1, id, 0, config)), "ncclCommInitRankConfig");
  settle(comm);
  return comm;
}

void reduce(ncclComm_t comm, int times) {
  for (int i = 0; i < times; ++i) {
    must(accepted(ncclAllReduce(g_data, g_data, 4, ncclFloat, ncclSum, comm, nullptr)), "reduce");
  }
}

}  // namespace

int main() {
  void* memory = nullptr;
  must(cudaMalloc(&memory, 4096) == cudaSuccess, "cudaMalloc");
  g_data = static_cast<float*>(memory);

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = "parent";
  ncclComm_t parent = make(&config);
  reduce(parent, 2);

  config.commName = "child";
  ncclComm_t child = nullptr;
  must(accepted(ncclCommSplit(parent, 0, 0, &child, &config)), "ncclCommSplit");
  config.commName = "gone";  // the name that was given must have been kept
  settle(parent);
  while (child == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  settle(child);
  reduce(child, 3);

  // One that ends before it was of use, and the next one in its place.
  ncclComm_t place = nullptr;
  for (const char* name : {"unused", "after"}) {
    config.commName = name;
    must(accepted(ncclCommSplit(parent, 0, 0, &place, &config)), "ncclCommSplit");
    settle(parent);
    settle(place);
    if (name[0] == 'a') reduce(place, 5);
    must(ncclCommDestroy(place) == ncclSuccess, "ncclCommDestroy");
  }

  ncclConfig_t blocking = NCCL_CONFIG_INITIALIZER;
  blocking.commName = "groups";
  ncclComm_t groups = make(&blocking);
  ncclGroupStart();
  ncclGroupStart();
  reduce(groups, 1);
  ncclGroupEnd();
  reduce(groups, 1);
  must(ncclGroupEnd() == ncclSuccess, "nested groups");
  ncclGroupStart();
  reduce(groups, 4);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  must(ncclGroupSimulateEnd(&info) == ncclSuccess, "ncclGroupSimulateEnd");
  ncclGroupStart();
  reduce(groups, 1);
  must(!accepted(ncclBroadcast(g_data, g_data, 4, ncclFloat, 5, groups, nullptr)), "a bad root");
  must(ncclGroupEnd() != ncclSuccess, "a group with a refused call");
  reduce(groups, 1);

  must(ncclCommAbort(child) == ncclSuccess, "ncclCommAbort");

  std::set<ncclComm_t> seen;
  for (int i = 0; i < 50; ++i) {
    ncclConfig_t plain = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = make(&plain);
    seen.insert(comm);
    reduce(comm, 1);
    must(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    must(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
  }
  // One that is given up while it is being made: the other rank never comes.
  ncclComm_t pair[2];
  must(ncclCommInitAll(pair, 2, nullptr) == ncclSuccess, "ncclCommInitAll");
  config.commName = "given up";
  ncclComm_t never = nullptr;
  must(ncclCommShrink(pair[0], nullptr, 0, &never, &config, NCCL_SHRINK_DEFAULT) == ncclInProgress,
       "ncclCommShrink");
  must(ncclCommAbort(never) == ncclSuccess, "ncclCommAbort");
  for (ncclComm_t comm : pair) must(ncclCommAbort(comm) == ncclSuccess, "ncclCommAbort");
  std::printf("%zu reused\n", 50 - seen.size());
}
