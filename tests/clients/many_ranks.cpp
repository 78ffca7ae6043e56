// Runs several ranks in one process, as nccl-tests does: with a group member for each device.
//
//   many_ranks DEVICES STEPS
//
// In a step every rank makes an all-gather of 64 float32, a reduce-scatter of 32, and an all-reduce
// of 16 on a communicator that is split off by parity. It also makes (rank + 1) copies of
// 256 (rank + 1) bytes to its device.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdlib>
#include <vector>

#include "check.h"

namespace {

struct Rank {
  int rank = 0;
  int device = 0;
  ncclComm_t world = nullptr;
  ncclComm_t half = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

void train(std::vector<Rank>& ranks, int steps) {
  std::vector<char> host(std::size_t{256} * 64);
  OK(ncclGroupStart());
  for (Rank& r : ranks) {
    OK(cudaSetDevice(r.device));
    OK(ncclCommSplit(r.world, r.rank % 2, r.rank, &r.half, nullptr));
  }
  OK(ncclGroupEnd());
  for (Rank& r : ranks) {
    OK(cudaSetDevice(r.device));
    OK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    void* memory = nullptr;
    OK(cudaMalloc(&memory, std::size_t{1} << 20));
    r.data = static_cast<float*>(memory);
  }
  for (int step = 1; step <= steps; ++step) {
    for (const Rank& r : ranks) {
      OK(cudaSetDevice(r.device));
      const std::size_t bytes = std::size_t{256} * static_cast<std::size_t>(r.rank + 1);
      for (int i = 0; i <= r.rank; ++i) {
        OK(cudaMemcpyAsync(r.data, host.data(), bytes, cudaMemcpyHostToDevice, r.stream));
      }
    }
    OK(ncclGroupStart());
    for (const Rank& r : ranks) {
      OK(ncclAllGather(r.data, r.data + 4096, 64, ncclFloat, r.world, r.stream));
    }
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
    for (const Rank& r : ranks) {
      OK(ncclReduceScatter(r.data, r.data + 8192, 32, ncclFloat, ncclSum, r.world, r.stream));
    }
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
    for (const Rank& r : ranks) {
      OK(ncclAllReduce(r.data, r.data + 4096, 16, ncclFloat, ncclSum, r.half, r.stream));
    }
    OK(ncclGroupEnd());
  }
  for (const Rank& r : ranks) {
    OK(cudaSetDevice(r.device));
    OK(cudaStreamSynchronize(r.stream));
  }
}

}  // namespace

int main(int, char** argv) {
  const int devices = std::atoi(argv[1]);
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  std::vector<Rank> ranks(static_cast<std::size_t>(devices));
  OK(ncclGroupStart());
  for (Rank& r : ranks) {
    r.rank = r.device = static_cast<int>(&r - ranks.data());
    OK(cudaSetDevice(r.device));
    OK(ncclCommInitRank(&r.world, devices, id, r.rank));
  }
  OK(ncclGroupEnd());
  train(ranks, std::atoi(argv[2]));
}
