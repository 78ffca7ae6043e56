// Makes the calls of every way: 3 collectives and 2 copies. The ways differ in how this file is
// compiled and linked, and in who opens the result.
//
// AT_LOAD, AT_EXIT: a constructor or a destructor of this object makes the calls, and they are not
// made when asked for. DRIVER: opens the CUDA driver, as a CUDA runtime does that is linked in.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

extern "C" int ways_calls();

namespace {

// The dynamic linker sets these when it loads this object, before any code of ours has run.
decltype(&ncclAllGather) g_gather = &ncclAllGather;
decltype(&cudaMemcpy) g_copy = &cudaMemcpy;

int calls() {
#ifdef DRIVER
  dlopen("libcuda.so.1", RTLD_NOW);
#endif
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  void* data = nullptr;
  char host[64] = {};
  int failed = 0;
  failed += cudaMalloc(&data, sizeof host) != cudaSuccess;
  failed += ncclGetUniqueId(&id) != ncclSuccess;
  failed += ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
  failed += ncclAllGather(data, data, 16, ncclFloat32, comm, nullptr) != ncclSuccess;
  failed += ncclAllReduce(data, data, 8, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess;
  failed += g_gather(data, data, 4, ncclFloat32, comm, nullptr) != ncclSuccess;
  failed += cudaMemcpyAsync(data, host, 64, cudaMemcpyHostToDevice, nullptr) != cudaSuccess;
  failed += g_copy(host, data, 32, cudaMemcpyDeviceToHost) != cudaSuccess;
  failed += ncclCommDestroy(comm) != ncclSuccess;
  return failed;
}

#ifdef AT_LOAD
[[gnu::constructor]] void at_load() {
  calls();
}
#endif
#ifdef AT_EXIT
[[gnu::destructor]] void at_exit() {
  calls();
}
#endif

}  // namespace

// Returns how many failed.
int ways_calls() {
#if defined AT_LOAD || defined AT_EXIT
  return 0;
#else
  return calls();
#endif
}
