// Two ranks that make one of each kind of counted call; test_tally.py knows how many.
#include <cuda_runtime_api.h>

#include "test/ranks.h"

namespace {

void rank_main(int rank, ncclUniqueId id) {
  setenv("RANK", rank == 0 ? "0" : "1", 1);  // as a launcher does; faults name this rank
  EXPECT(cudaSetDevice(rank) == cudaSuccess);
  cudaStream_t stream = nullptr;
  EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
  ncclComm_t comm = nullptr, alone = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, rank) == ncclSuccess);
  EXPECT(ncclCommSplit(comm, rank, 0, &alone, nullptr) == ncclSuccess);
  void *device = nullptr, *pinned = nullptr;
  EXPECT(cudaMalloc(&device, 4096) == cudaSuccess);
  EXPECT(cudaHostAlloc(&pinned, 4096, cudaHostAllocDefault) == cudaSuccess);

  EXPECT(cudaMemcpyAsync(device, pinned, 100, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  EXPECT(cudaMemcpy(pinned, device, 50, cudaMemcpyDefault) == cudaSuccess);
  EXPECT(cudaMemcpy2D(device, 64, pinned, 64, 10, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  EXPECT(cudaMemcpy(nullptr, pinned, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);

  EXPECT(ncclAllGather(pinned, device, 10, ncclFloat16, comm, stream) == ncclSuccess);
  EXPECT(ncclBcast(device, 7, ncclInt64, 0, alone, stream) == ncclSuccess);
  EXPECT(ncclAllGather(pinned, device, 1, ncclInt8, nullptr, stream) == ncclInvalidArgument);

  EXPECT(ncclGroupStart() == ncclSuccess);  // one that fails
  EXPECT(ncclReduceScatter(device, device, 3, ncclFloat32, ncclSum, comm, stream) == ncclSuccess);
  EXPECT(ncclSend(device, 1, ncclInt8, 2, comm, stream) == ncclInvalidArgument);
  EXPECT(ncclGroupEnd() == ncclInvalidArgument);
  EXPECT(ncclGroupStart() == ncclSuccess);  // one that succeeds
  EXPECT(ncclReduceScatter(device, device, 4, ncclFloat32, ncclSum, comm, stream) == ncclSuccess);
  EXPECT(ncclSend(device, 5, ncclUint8, 1 - rank, comm, stream) == ncclSuccess);
  EXPECT(ncclRecv(device, 5, ncclUint8, 1 - rank, comm, stream) == ncclSuccess);
  EXPECT(ncclGroupEnd() == ncclSuccess);

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  EXPECT(ncclAllReduce(device, device, 6, ncclBfloat16, ncclSum, comm, stream) == ncclSuccess);
  EXPECT(cudaMemcpyAsync(pinned, device, 20, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  EXPECT(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) EXPECT(cudaGraphLaunch(exec, stream) == cudaSuccess);
  EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
}

}  // namespace

int main() {
  run_ranks(2, rank_main);
  return 0;
}
