// All-gathers of one rank in groups, all on one stream, of one size or of several.
//
// grouped groups calls [uneven]
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdlib>

#include "check.h"

int main(int argc, char** argv) {
  const int groups = argc > 1 ? std::atoi(argv[1]) : 1;
  const int calls = argc > 2 ? std::atoi(argv[2]) : 2;
  const bool uneven = argc > 3;
  constexpr size_t kCount = 1024;
  const size_t most = kCount << calls;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void *send = nullptr, *receive = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMalloc(&send, most * sizeof(float)));
  OK(cudaMalloc(&receive, most * sizeof(float)));
  OK(ncclGetUniqueId(&id));
  OK(ncclCommInitRank(&comm, 1, id, 0));
  for (int i = 0; i < groups; ++i) {
    OK(ncclGroupStart());
    for (int n = 0; n < calls; ++n) {
      const size_t count = uneven ? kCount << n : kCount;
      OK(ncclAllGather(send, receive, count, ncclFloat, comm, stream));
    }
    OK(ncclGroupEnd());
  }
  OK(cudaStreamSynchronize(stream));
  OK(ncclCommDestroy(comm));
}
