// The entry points that move data.
#include "engine/device.h"
#include "engine/model.h"
#include "nccl/entry.h"
#include "nccl/group.h"
#include "nccl/nvtx_range.h"
#include "nccl/reduce.h"

using namespace standin;

namespace {

bool per_rank(Function f) {
  return f == Function::kAllGather || f == Function::kReduceScatter || f == Function::kAlltoAll ||
         f == Function::kGather || f == Function::kScatter;
}

bool reduces(Function f) {
  return f == Function::kReduceScatter || f == Function::kAllReduce || f == Function::kReduce;
}

ncclResult_t check(const ncclComm& comm, Task& task) {
  if (comm.in_progress) return ncclInvalidArgument;  // not ready yet (init.cc, ncclCommEnsureReady)
  if (size_of(task.type) == 0) return ncclInvalidArgument;
  if (task.peer < 0 || task.peer >= comm.nranks) return ncclInvalidArgument;
  if (reduces(task.function) && task.reduction >= ncclNumOps) {
    const auto index = static_cast<size_t>(task.reduction) - ncclNumOps;
    if (index >= comm.reductions.size() || !comm.reductions[index]) return ncclInvalidArgument;
    if (comm.reductions[index]->type != task.type) return ncclInvalidArgument;
    task.scaling = comm.reductions[index];
    task.reduction = ncclSum;
  }
  if (comm.segment.broken()) return ncclRemoteError;
  return ncclSuccess;
}

// `name` is a literal: the function that the program called.
ncclResult_t enqueue(const char* name, ncclComm_t handle, const Task& task,
                     cudaStream_t stream_handle) {
  // ncclBcast has no range of its own.
  const NvtxRange range(task.function == Function::kBroadcast ? "ncclBroadcast" : name);
  const CommRef comm = find_comm(handle);
  // Stream 0 is that of the communicator's device, whichever is current (group.cc, doLaunches).
  const StreamRef stream = find_stream(stream_handle, comm ? comm->device : current_device());
  Call call{.comm = comm, .stream = stream, .task = task};
  call.key = {.function = name,
              .dtype = static_cast<uint8_t>(task.type),
              .mode = stream && stream->capture ? tally::Mode::kCaptured : tally::Mode::kDirect,
              .comm = comm ? comm->ordinal : 0};
  call.row = tally::enter(call.key);
  const auto fail = [&](ncclResult_t result) {
    tally::failed(call.row);
    return fail_call(result);
  };
  const Outcome fault = meet_fault(name, acting_rank(comm ? comm->rank : 0));
  if (!comm || !stream) return fail(ncclInvalidArgument);
  if (const ncclResult_t result = check(*comm, call.task)) return fail(result);
  call.hang_device = fault.hang_device;
  call.count = task.count;
  call.bytes = task.count * size_of(task.type) *
               (per_rank(task.function) ? static_cast<size_t>(comm->nranks) : 1);
  return add_call(std::move(call));
}

// ncclBcast is ncclBroadcast; NCCL calls it by its exported name, where a preload sees it too.
thread_local bool in_bcast = false;

}  // namespace

extern "C" {

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAllGather", comm, {Function::kAllGather, send, recv, count, type}, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclReduceScatter", comm, {Function::kReduceScatter, send, recv, count, type, op},
                 stream);
}
ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAllReduce", comm, {Function::kAllReduce, send, recv, count, type, op},
                 stream);
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(in_bcast ? "ncclBcast" : "ncclBroadcast", comm,
                 {Function::kBroadcast, send, recv, count, type, ncclSum, root}, stream);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  in_bcast = true;
  const ncclResult_t result = ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
  in_bcast = false;
  return result;
}
ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclReduce", comm, {Function::kReduce, send, recv, count, type, op, root},
                 stream);
}
ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAlltoAll", comm, {Function::kAlltoAll, send, recv, count, type}, stream);
}
ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclGather", comm, {Function::kGather, send, recv, count, type, ncclSum, root},
                 stream);
}
ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclScatter", comm, {Function::kScatter, send, recv, count, type, ncclSum, root},
                 stream);
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclSend", comm, {Function::kSend, send, nullptr, count, type, ncclSum, peer},
                 stream);
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue("ncclRecv", comm, {Function::kRecv, nullptr, recv, count, type, ncclSum, peer},
                 stream);
}

ncclResult_t ncclGroupStart() {
  group_start();
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return group_end();
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (info) info->estimatedTime = -1;  // NCCL's answer without a tuning model
  return group_simulate_end();
}

}  // extern "C"

PNCCL(ncclAllGather);
PNCCL(ncclReduceScatter);
PNCCL(ncclAllReduce);
PNCCL(ncclBroadcast);
PNCCL(ncclBcast);
PNCCL(ncclReduce);
PNCCL(ncclAlltoAll);
PNCCL(ncclGather);
PNCCL(ncclScatter);
PNCCL(ncclSend);
PNCCL(ncclRecv);
PNCCL(ncclGroupStart);
PNCCL(ncclGroupEnd);
PNCCL(ncclGroupSimulateEnd);
