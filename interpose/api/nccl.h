// The NCCL functions that move data: the one list from which wrappers, names, counting rules and
// the coverage report follow. Adding a function is adding a row.
//
// X(function, bucket, elements, collective,
//   (parameters), (arguments), (how the arguments read as NcclArgs))
//   elements    how the contract's elements follow from `count` (nccl-tests' message sizes)
//   collective  takes part in the communicator's seq and signature; Send and Recv have their own
//   seq
//
// Not here, on purpose: ncclPutSignal and the other one-sided calls (NCCL >= 2.29).
#pragma once

#define TPROF_NCCL_DATA(X)                                                                        \
  X(ncclAllGather, ALLGATHER, count_times_ranks, true,                                            \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,            \
     cudaStream_t stream),                                                                        \
    (send, recv, count, type, comm, stream),                                                      \
    ({.send = send, .recv = recv, .count = count, .type = type, .comm = comm, .stream = stream})) \
  X(ncclReduceScatter, RESHARDING, count_times_ranks, true,                                       \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,             \
     ncclComm_t comm, cudaStream_t stream),                                                       \
    (send, recv, count, type, op, comm, stream),                                                  \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .reduce = reduce_of(op)}))                                                                  \
  X(ncclAllReduce, ALLREDUCE, count, true,                                                        \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,             \
     ncclComm_t comm, cudaStream_t stream),                                                       \
    (send, recv, count, type, op, comm, stream),                                                  \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .reduce = reduce_of(op)}))                                                                  \
  X(ncclBroadcast, BROADCAST, count, true,                                                        \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,  \
     cudaStream_t stream),                                                                        \
    (send, recv, count, type, root, comm, stream),                                                \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = root}))                                                                             \
  X(ncclBcast, BROADCAST, count, true,                                                            \
    (void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,                  \
     cudaStream_t stream),                                                                        \
    (buffer, count, type, root, comm, stream),                                                    \
    ({.send = buffer,                                                                             \
      .recv = buffer,                                                                             \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = root}))                                                                             \
  X(ncclReduce, REDUCE, count, true,                                                              \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,   \
     ncclComm_t comm, cudaStream_t stream),                                                       \
    (send, recv, count, type, op, root, comm, stream),                                            \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = root,                                                                               \
      .reduce = reduce_of(op)}))                                                                  \
  X(ncclSend, P2P, count, false,                                                                  \
    (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,              \
     cudaStream_t stream),                                                                        \
    (send, count, type, peer, comm, stream),                                                      \
    ({.send = send,                                                                               \
      .recv = nullptr,                                                                            \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = peer}))                                                                             \
  X(ncclRecv, P2P, count, false,                                                                  \
    (void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,                    \
     cudaStream_t stream),                                                                        \
    (recv, count, type, peer, comm, stream),                                                      \
    ({.send = nullptr,                                                                            \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = peer}))                                                                             \
  TPROF_NCCL_DATA_2_28(X)

// Functions that nccl.h declares since 2.28.3.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
#define TPROF_NCCL_DATA_2_28(X)                                                                   \
  X(ncclAlltoAll, ALLTOALL, count_times_ranks, true,                                              \
    (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,            \
     cudaStream_t stream),                                                                        \
    (send, recv, count, type, comm, stream),                                                      \
    ({.send = send, .recv = recv, .count = count, .type = type, .comm = comm, .stream = stream})) \
  X(ncclGather, OTHER_COLL, count_times_ranks, true,                                              \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,  \
     cudaStream_t stream),                                                                        \
    (send, recv, count, type, root, comm, stream),                                                \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = root}))                                                                             \
  X(ncclScatter, OTHER_COLL, count_times_ranks, true,                                             \
    (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,  \
     cudaStream_t stream),                                                                        \
    (send, recv, count, type, root, comm, stream),                                                \
    ({.send = send,                                                                               \
      .recv = recv,                                                                               \
      .count = count,                                                                             \
      .type = type,                                                                               \
      .comm = comm,                                                                               \
      .stream = stream,                                                                           \
      .peer = root}))
#else
#define TPROF_NCCL_DATA_2_28(X)
#endif

// What a communicator's life consists of: X(function). Bodies in hook/nccl_life.cpp.
#define TPROF_NCCL_LIFE(X)    \
  X(ncclGroupStart)           \
  X(ncclGroupEnd)             \
  X(ncclGroupSimulateEnd)     \
  X(ncclCommInitRank)         \
  X(ncclCommInitRankConfig)   \
  X(ncclCommInitRankScalable) \
  X(ncclCommInitAll) X(ncclCommSplit) X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort)
