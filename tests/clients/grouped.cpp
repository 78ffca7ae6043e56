// All-gathers of one rank in groups, all on one stream.
//
// grouped groups calls
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                    \
  do {                                                 \
    if (const int result = static_cast<int>(call)) {   \
      std::fprintf(stderr, "%s: %d\n", #call, result); \
      std::exit(1);                                    \
    }                                                  \
  } while (false)

int main(int argc, char** argv) {
  const int groups = argc > 1 ? std::atoi(argv[1]) : 1;
  const int calls = argc > 2 ? std::atoi(argv[2]) : 2;
  constexpr size_t kCount = 1024;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void *send = nullptr, *receive = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&send, kCount * sizeof(float)));
  CHECK(cudaMalloc(&receive, kCount * sizeof(float)));
  CHECK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRank(&comm, 1, id, 0));
  for (int i = 0; i < groups; ++i) {
    CHECK(ncclGroupStart());
    for (int n = 0; n < calls; ++n) {
      CHECK(ncclAllGather(send, receive, kCount, ncclFloat, comm, stream));
    }
    CHECK(ncclGroupEnd());
  }
  CHECK(cudaStreamSynchronize(stream));
  CHECK(ncclCommDestroy(comm));
}
