// Declares what NCCL 2.32's nccl.h declares and an older one may not.
#pragma once

#include <nccl.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 32, 0)
using ncclCollConfig_t = struct ncclCollConfig;
extern "C" {
ncclResult_t ncclAllGatherConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t,
                                 cudaStream_t, const ncclCollConfig_t*);
ncclResult_t ncclReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int,
                              ncclComm_t, cudaStream_t, const ncclCollConfig_t*);
}
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
struct ncclWaitSignalDesc_t {
  int opCnt, peer, sigIdx, ctx;
};
extern "C" {
ncclResult_t ncclPutSignal(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                           unsigned int, ncclComm_t, cudaStream_t);
ncclResult_t ncclSignal(int, int, int, unsigned int, ncclComm_t, cudaStream_t);
ncclResult_t ncclWaitSignal(int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t);
ncclResult_t ncclCommGetUniqueId(ncclComm_t, ncclUniqueId*);
ncclResult_t ncclCommGrow(ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*, ncclConfig_t*);
}
#endif

// Only this library has it: the sum of the arguments that arrived.
extern "C" unsigned long long last_arguments();
