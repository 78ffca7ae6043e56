// The NCCL functions that move data: wrappers, names, counting rules and the coverage report all
// come from this list. To add a function, add a row. Rows declare what they wrap, so functions
// newer than the available nccl.h are wrapped, too, and others are checked against it.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 32, 0)
using ncclCollConfig_t = struct ncclCollConfig;  // only passed on
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 0)
using ncclWaitSignalDesc_t = struct ncclWaitSignalDesc;  // the same
#endif

namespace tprof {

// How calls are numbered, from 0. `collective`: per communicator, as in its signature. `send`,
// `recv`: per peer. `none`: one-sided calls.
enum class Order : unsigned char { none, collective, send, recv };

}  // namespace tprof

// clang-format off

// Collectives: X_TWIN(function, twin, since, bucket, elements, (parameters), (arguments), (as NcclArgs))
//   twin      the same with a last parameter, const ncclCollConfig_t* (NCCL >= 2.32)
//   since     the first NCCL that has the function, of 2.7 and later, by its sources
//   elements  how the contract's elements follow from `count` (nccl-tests' message sizes)
//   NcclArgs  send, recv, count, type, comm, stream, root or peer, reduction
#define TPROF_NCCL_COLLECTIVE(X_TWIN) \
  X_TWIN(ncclAllGather, ncclAllGatherConfig, 20700, ALLGATHER, count_times_ranks, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, comm, stream), \
    ({send, recv, count, type, comm, stream})) \
  X_TWIN(ncclReduceScatter, ncclReduceScatterConfig, 20700, RESHARDING, count_times_ranks, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, op, comm, stream), \
    ({send, recv, count, type, comm, stream, kNoPeer, reduce_of(op)})) \
  X_TWIN(ncclAllReduce, ncclAllReduceConfig, 20700, ALLREDUCE, count, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, op, comm, stream), \
    ({send, recv, count, type, comm, stream, kNoPeer, reduce_of(op)})) \
  X_TWIN(ncclBroadcast, ncclBroadcastConfig, 20700, BROADCAST, count, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, root, comm, stream), \
    ({send, recv, count, type, comm, stream, root})) \
  X_TWIN(ncclReduce, ncclReduceConfig, 20700, REDUCE, count, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, op, root, comm, stream), \
    ({send, recv, count, type, comm, stream, root, reduce_of(op)})) \
  X_TWIN(ncclAlltoAll, ncclAlltoAllConfig, 22800, ALLTOALL, count_times_ranks, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, comm, stream), \
    ({send, recv, count, type, comm, stream})) \
  X_TWIN(ncclGather, ncclGatherConfig, 22800, OTHER_COLL, count_times_ranks, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, root, comm, stream), \
    ({send, recv, count, type, comm, stream, root})) \
  X_TWIN(ncclScatter, ncclScatterConfig, 22800, OTHER_COLL, count_times_ranks, \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), \
    (send, recv, count, type, root, comm, stream), \
    ({send, recv, count, type, comm, stream, root}))

// Others, without a twin: X(function, since, order, bucket, elements, (parameters), (arguments), (as NcclArgs)).
#define TPROF_NCCL_OTHER(X) \
  X(ncclBcast, 20700, collective, BROADCAST, count, \
    (void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), \
    (buffer, count, type, root, comm, stream), \
    ({buffer, buffer, count, type, comm, stream, root})) \
  X(ncclSend, 20700, send, P2P, count, \
    (const void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream), \
    (buffer, count, type, peer, comm, stream), \
    ({buffer, nullptr, count, type, comm, stream, peer})) \
  X(ncclRecv, 20700, recv, P2P, count, \
    (void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream), \
    (buffer, count, type, peer, comm, stream), \
    ({nullptr, buffer, count, type, comm, stream, peer})) \
  X(ncclPutSignal, 22900, none, P2P, count, \
    (const void* buffer, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int signal, int context, \
     unsigned int flags, ncclComm_t comm, cudaStream_t stream), \
    (buffer, count, type, peer, window, offset, signal, context, flags, comm, stream), \
    ({buffer, nullptr, count, type, comm, stream, peer})) \
  X(ncclSignal, 22900, none, P2P, count, \
    (int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream), \
    (peer, signal, context, flags, comm, stream), \
    ({nullptr, nullptr, 0, ncclInt8, comm, stream, peer})) \
  X(ncclWaitSignal, 22900, none, P2P, count, \
    (int descriptors, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream), \
    (descriptors, signals, comm, stream), \
    ({nullptr, nullptr, 0, ncclInt8, comm, stream}))

// NCCL EP's, of libnccl_ep.so: X(function, since, tokens, stream)
//   since   the first version of NCCL EP: its versions since 0.1 share these prototypes
//   tokens  the number of the argument whose tokens are the call's elements; 0: none
//   stream  the number of the argument that is the stream
#define TPROF_NCCL_EP(X) \
  X(ncclEpDispatch, 100, 1, 5) \
  X(ncclEpCombine, 100, 2, 4) \
  X(ncclEpComplete, 100, 0, 2)
// These make the objects for such calls, from a communicator or a group: X(function, since, from).
#define TPROF_NCCL_EP_LIFE(X) \
  X(ncclEpCreateGroup, 100, communicator) \
  X(ncclEpInitHandle, 100, group) \
  X(ncclEpCreateHandle, 100, group)

// The functions of a communicator's life: X(function, since). Bodies in hook/nccl_life.cpp.
#define TPROF_NCCL_LIFE(X) \
  X(ncclGroupStart, 20700) \
  X(ncclGroupEnd, 20700) \
  X(ncclGroupSimulateEnd, 22200) \
  X(ncclCommInitRank, 20700) \
  X(ncclCommInitRankConfig, 21400) \
  X(ncclCommInitRankScalable, 22300) \
  X(ncclCommInitAll, 20700) \
  X(ncclCommSplit, 21800) \
  X(ncclCommShrink, 22700) \
  X(ncclCommGrow, 22900) \
  X(ncclCommFinalize, 21400) \
  X(ncclCommDestroy, 20700) \
  X(ncclCommAbort, 20700) \
  X(ncclCommRevoke, 22807) \
  X(ncclCommGetAsyncError, 20700)
// clang-format on
