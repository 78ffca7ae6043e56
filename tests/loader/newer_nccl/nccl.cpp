// A libnccl.so.2 of two ranks that has functions newer than the nccl.h that it is built with. It
// sums up their last arguments: a wrapper that lost one would show.
#include "newer.h"

struct ncclComm {
  int nranks, rank;
};

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
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId, int rank) {
  *comm = new ncclComm{nranks, rank};
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->nranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  *device = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetUniqueId(ncclComm_t, ncclUniqueId* id) {
  *id = {};
  id->internal[0] = 'g';
  return ncclSuccess;
}
// A rank that was there keeps its number.
ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId*, int rank,
                          ncclComm_t* grown, ncclConfig_t*) {
  *grown = new ncclComm{nranks, comm == nullptr ? rank : comm->rank};
  return ncclSuccess;
}
// All ranks have one colour, and keep their order.
ncclResult_t ncclCommSplit(ncclComm_t comm, int, int, ncclComm_t* child, ncclConfig_t*) {
  *child = new ncclComm{comm->nranks, comm->rank};
  return ncclSuccess;
}
ncclResult_t ncclCommRevoke(ncclComm_t, int flags) {
  g_sum += static_cast<unsigned>(flags);
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t) {
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
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t,
                        cudaStream_t stream) {
  g_sum += static_cast<unsigned>(peer + signal + context) + flags +
           reinterpret_cast<unsigned long long>(stream);
  return ncclSuccess;
}
ncclResult_t ncclWaitSignal(int n, ncclWaitSignalDesc_t* wanted, ncclComm_t, cudaStream_t stream) {
  g_sum += static_cast<unsigned>(n + wanted->sigIdx) + reinterpret_cast<unsigned long long>(stream);
  return ncclSuccess;
}
}
