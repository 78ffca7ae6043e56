// A libnccl.so.2 of two ranks that has functions newer than the nccl.h that it is built with. It
// remembers the last argument of each: a wrapper that lost one would show.
#include "newer.h"

struct ncclComm {};

namespace {
unsigned long long g_sum;
}

extern "C" {

unsigned long long last_arguments() {
  return g_sum;
}
ncclResult_t ncclGetVersion(int* version) {
  *version = 23203;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int, ncclUniqueId, int) {
  *comm = new ncclComm;
  return ncclSuccess;
}
ncclResult_t ncclAllGatherConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t,
                                 cudaStream_t, const ncclCollConfig_t* config) {
  g_sum += reinterpret_cast<unsigned long long>(config);
  return ncclSuccess;
}
ncclResult_t ncclReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int,
                              ncclComm_t, cudaStream_t, const ncclCollConfig_t* config) {
  g_sum += reinterpret_cast<unsigned long long>(config);
  return ncclSuccess;
}
ncclResult_t ncclPutSignal(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t offset,
                           int signal, int context, unsigned int flags, ncclComm_t,
                           cudaStream_t stream) {
  g_sum += offset + static_cast<unsigned>(signal) + static_cast<unsigned>(context) + flags +
           reinterpret_cast<unsigned long long>(stream);
  return ncclSuccess;
}
}
