// Runs a test body in several processes, one per rank, none of which has touched CUDA before.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

// In a rank: prints a condition that does not hold and exits, so that the parent's test fails.
#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: rank: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (false)

// Returns the wait status of every rank.
inline std::vector<int> run_ranks(int nranks,
                                  const std::function<void(int rank, ncclUniqueId id)>& body) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < nranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      body(rank, id);
      std::_Exit(0);
    }
    pids.push_back(pid);
  }
  std::vector<int> statuses;
  for (pid_t pid : pids) {
    int status = -1;
    waitpid(pid, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

inline bool all_good(const std::vector<int>& statuses) {
  for (int status : statuses) {
    if (status != 0) return false;
  }
  return true;
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  Rank(int rank, int nranks, ncclUniqueId id) {
    EXPECT(cudaSetDevice(rank) == cudaSuccess);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(ncclCommInitRank(&comm, nranks, id, rank) == ncclSuccess);
  }
  void wait() const { EXPECT(cudaStreamSynchronize(stream) == cudaSuccess); }
};

// Element `i` of the data that `rank` sends.
inline int value(int rank, size_t i) {
  return static_cast<int>(i % 1000) * 10 + rank;
}

inline int* buffer(size_t count) {
  void* memory = nullptr;
  EXPECT(cudaMalloc(&memory, std::max<size_t>(count, 1) * sizeof(int)) == cudaSuccess);
  return static_cast<int*>(memory);
}
inline int* filled(int rank, size_t count) {
  int* data = buffer(count);
  for (size_t i = 0; i < count; ++i) data[i] = value(rank, i);
  return data;
}
