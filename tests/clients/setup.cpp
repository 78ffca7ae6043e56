// A rank of a job whose ranks do not all come to a call of a communicator's life, or do not come
// back from it.
//
//   setup MODE JOB
// The last rank stays away from the call that MODE names, and the others are inside it: init,
// config, scalable, nonblocking, group (inits in a group), split, shrink (without rank 0). With sub
// the ranks have communicators of two, and the last makes no call there. All come with healthy,
// finalize, revoke and abort, and with fail, where the init of rank 1 is refused.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "check.h"

namespace {

int g_rank, g_ranks;
std::string_view g_mode;
const char* g_job = nullptr;  // no other job has its communicators
void* g_data = nullptr;

// The last rank does not come to what follows.
void miss() {
  if (g_rank == g_ranks - 1) pause();
}

ncclUniqueId id_of(int number) {
  ncclUniqueId id;
  std::memset(&id, number, sizeof id);
  std::strncpy(id.internal, g_job, sizeof id.internal / 2);
  return id;
}

void settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    OK(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  OK(state);
}

ncclComm_t init(int number) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id = id_of(number);
  const bool late = number == 1;
  if (late && (g_mode == "init" || g_mode == "config" || g_mode == "scalable" ||
               g_mode == "nonblocking" || g_mode == "group"))
    miss();
  if (g_mode == "config") {
    OK(ncclCommInitRankConfig(&comm, g_ranks, id, g_rank, &config));
  } else if (g_mode == "scalable") {
    OK(ncclCommInitRankScalable(&comm, g_ranks, g_rank, 1, &id, &config));
  } else if (g_mode == "nonblocking") {
    config.blocking = 0;
    if (ncclCommInitRankConfig(&comm, g_ranks, id, g_rank, &config) != ncclInProgress) std::exit(2);
    settle(comm);
  } else if (g_mode == "group") {
    ncclGroupStart();
    OK(ncclCommInitRank(&comm, g_ranks, id, g_rank));
    OK(ncclGroupEnd());
  } else {
    const int rank = g_mode == "fail" && g_rank == 1 ? g_ranks : g_rank;
    OK(ncclCommInitRank(&comm, g_ranks, id, rank));
  }
  return comm;
}

void reduce(ncclComm_t comm) {
  OK(ncclAllReduce(g_data, g_data, 500, ncclFloat, ncclSum, comm, nullptr));
  cudaDeviceSynchronize();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_mode = argv[1];
  g_job = argv[2];
  g_rank = std::atoi(std::getenv("RANK"));
  g_ranks = std::atoi(std::getenv("WORLD_SIZE"));
  cudaSetDevice(g_rank);
  cudaMalloc(&g_data, 1 << 20);
  cudaMemset(g_data, 0, 1 << 20);
  int word = 0;
  cudaMemcpy(g_data, &word, sizeof word, cudaMemcpyHostToDevice);
  ncclComm_t comm = init(1);
  reduce(comm);
  ncclComm_t child = nullptr;
  if (g_mode == "split") {
    miss();
    OK(ncclCommSplit(comm, 0, g_rank, &child, nullptr));
  }
  if (g_mode == "shrink") {
    int without = 0;
    if (g_rank == 0) pause();
    miss();
    OK(ncclCommShrink(comm, &without, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
  }
  if (g_mode == "sub") {
    OK(ncclCommSplit(comm, g_rank < 2 ? 0 : 1, g_rank, &child, nullptr));
    if (g_rank >= 2) miss();
    reduce(child);
  }
  if (g_mode == "finalize") OK(ncclCommFinalize(comm));
  if (g_mode == "revoke") OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
  OK(g_mode == "abort" ? ncclCommAbort(comm) : ncclCommDestroy(comm));
  std::puts("through");
}
