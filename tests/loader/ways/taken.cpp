// Takes the functions with dlsym, as programs do that learn of NCCL and CUDA only when they run:
//
//   ways_taken (handle | default)      of the opened libraries, or of whatever comes first
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <string_view>

#define TAKE(library, name) \
  const auto name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))

int main(int argc, char** argv) {
  const bool any = argc > 1 && std::string_view(argv[1]) == "default";
  const int flags = RTLD_NOW | (any ? RTLD_GLOBAL : RTLD_LOCAL);
  void* nccl = dlopen("libnccl.so.2", flags);
  void* cudart = dlopen("libcudart.so.13", flags);
  if (nccl == nullptr || cudart == nullptr) return 1;
  if (any) nccl = cudart = RTLD_DEFAULT;
  TAKE(nccl, ncclGetUniqueId);
  TAKE(nccl, ncclCommInitRank);
  TAKE(nccl, ncclAllGather);
  TAKE(nccl, ncclAllReduce);
  TAKE(nccl, ncclCommDestroy);
  const auto allocate =
      reinterpret_cast<cudaError_t (*)(void**, std::size_t)>(dlsym(cudart, "cudaMalloc"));
  TAKE(cudart, cudaMemcpyAsync);
  TAKE(cudart, cudaMemcpy);

  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  void* data = nullptr;
  char host[64] = {};
  int failed = 0;
  failed += allocate(&data, sizeof host) != cudaSuccess;
  failed += ncclGetUniqueId(&id) != ncclSuccess;
  failed += ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
  failed += ncclAllGather(data, data, 16, ncclFloat32, comm, nullptr) != ncclSuccess;
  failed += ncclAllReduce(data, data, 8, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess;
  failed += ncclAllGather(data, data, 4, ncclFloat32, comm, nullptr) != ncclSuccess;
  failed += cudaMemcpyAsync(data, host, 64, cudaMemcpyHostToDevice, nullptr) != cudaSuccess;
  failed += cudaMemcpy(host, data, 32, cudaMemcpyDeviceToHost) != cudaSuccess;
  failed += ncclCommDestroy(comm) != ncclSuccess;
  return failed;
}
