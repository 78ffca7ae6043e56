// Runs several ranks in one process, as nccl-tests does: with a group member for each device.
//
//   many_ranks DEVICES STEPS
//
// In a step every rank makes an all-gather of 64 float32, a reduce-scatter of 32, and an all-reduce
// of 16 on a communicator that is split off by parity. It also makes (rank + 1) copies of
// 256 (rank + 1) bytes to its device.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

#define CHECK(call)                                                    \
  do {                                                                 \
    if (const auto code = (call); static_cast<int>(code) != 0) {       \
      std::fprintf(stderr, "%s: %d\n", #call, static_cast<int>(code)); \
      std::_Exit(1);                                                   \
    }                                                                  \
  } while (false)

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
  CHECK(ncclGroupStart());
  for (Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(ncclCommSplit(r.world, r.rank % 2, r.rank, &r.half, nullptr));
  }
  CHECK(ncclGroupEnd());
  for (Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, std::size_t{1} << 20));
    r.data = static_cast<float*>(memory);
  }
  for (int step = 1; step <= steps; ++step) {
    for (const Rank& r : ranks) {
      CHECK(cudaSetDevice(r.device));
      const std::size_t bytes = std::size_t{256} * static_cast<std::size_t>(r.rank + 1);
      for (int i = 0; i <= r.rank; ++i) {
        CHECK(cudaMemcpyAsync(r.data, host.data(), bytes, cudaMemcpyHostToDevice, r.stream));
      }
    }
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      CHECK(ncclAllGather(r.data, r.data + 4096, 64, ncclFloat, r.world, r.stream));
    }
    CHECK(ncclGroupEnd());
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      CHECK(ncclReduceScatter(r.data, r.data + 8192, 32, ncclFloat, ncclSum, r.world, r.stream));
    }
    CHECK(ncclGroupEnd());
    CHECK(ncclGroupStart());
    for (const Rank& r : ranks) {
      CHECK(ncclAllReduce(r.data, r.data + 4096, 16, ncclFloat, ncclSum, r.half, r.stream));
    }
    CHECK(ncclGroupEnd());
  }
  for (const Rank& r : ranks) {
    CHECK(cudaSetDevice(r.device));
    CHECK(cudaStreamSynchronize(r.stream));
  }
}

}  // namespace

int main(int, char** argv) {
  const int devices = std::atoi(argv[1]);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  std::vector<Rank> ranks(static_cast<std::size_t>(devices));
  CHECK(ncclGroupStart());
  for (Rank& r : ranks) {
    r.rank = r.device = static_cast<int>(&r - ranks.data());
    CHECK(cudaSetDevice(r.device));
    CHECK(ncclCommInitRank(&r.world, devices, id, r.rank));
  }
  CHECK(ncclGroupEnd());
  train(ranks, std::atoi(argv[2]));
}
