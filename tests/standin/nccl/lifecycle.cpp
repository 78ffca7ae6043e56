// The entry points that create, query and end communicators, and those for user reductions, memory
// and registration.
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "engine/device.h"
#include "engine/memory.h"
#include "engine/model.h"
#include "nccl/entry.h"
#include "nccl/group.h"
#include "nccl/reduce.h"

using namespace standin;

namespace {

// FNV-1a. Any hash would do, since the same bytes give the same name on all ranks.
uint64_t hash(const void* bytes, size_t size, uint64_t start = 0xcbf29ce484222325) {
  for (size_t i = 0; i < size; ++i) {
    start = (start ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  }
  return start;
}
uint64_t hash(std::initializer_list<int64_t> numbers, uint64_t start) {
  for (int64_t n : numbers) start = hash(&n, sizeof n, start);
  return start;
}

// ncclConfig_t grew from version to version; its size tells which fields it has.
bool is_blocking(const ncclConfig_t* config, bool otherwise) {
  if (!config || config->size < offsetof(ncclConfig_t, blocking) + sizeof config->blocking) {
    return otherwise;
  }
  return config->blocking == NCCL_CONFIG_UNDEF_INT ? otherwise : config->blocking != 0;
}

// Copies the name, since the program's text may be gone when it is needed.
std::string name_in(const ncclConfig_t* config) {
  constexpr size_t kEnd = offsetof(ncclConfig_t, commName) + sizeof config->commName;
  if (!config || config->size < kEnd || !config->commName) return "";
  return config->commName;
}

Configured read(const ncclConfig_t* config, bool blocking_otherwise) {
  return {is_blocking(config, blocking_otherwise), name_in(config)};
}

ncclResult_t wait_joined(const CommRef& comm) {
  return comm->segment.wait_joined() ? ncclSuccess : ncclRemoteError;
}

ncclResult_t init(ncclComm_t* out, int nranks, const ncclUniqueId& id, int rank,
                  const Configured& configured) {
  if (!out || nranks < 1 || rank < 0 || rank >= nranks) return fail_call(ncclInvalidArgument);
  use_context(current_device());
  const CommRef comm =
      create_comm(hash(&id, sizeof id), nranks, rank, current_device(), configured);
  *out = comm.get();
  return add_setup({comm, configured.blocking, {[comm] { return wait_joined(comm); }}});
}

// Creates a child communicator of `members`, which are in the order of their new ranks.
CommRef make_child(const CommRef& parent, uint64_t id, const std::vector<int>& members,
                   const Configured& configured) {
  const auto mine = std::find(members.begin(), members.end(), parent->rank);
  return create_comm(id, static_cast<int>(members.size()), static_cast<int>(mine - members.begin()),
                     parent->device, configured);
}

// Does what NCCL's ncclCommEnsureReady does, which also warns if NCCL_DEBUG says so.
CommRef ready_comm(ncclComm_t handle) {
  CommRef comm = find_comm(handle);
  if (!comm || !comm->in_progress) return comm;
  std::fputs("NCCL WARN Attempt to use communicator before it was ready\n", stderr);
  return nullptr;
}

constexpr int kSplit = 1, kShrink = 2;  // kinds of children, part of their ids

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!id) return ncclInvalidArgument;
  return getrandom(id, sizeof *id, 0) == sizeof *id ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  return init(comm, nranks, id, rank, read(nullptr, true));
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init(comm, nranks, id, rank, read(config, true));
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int id_count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  if (id_count < 1 || !ids) return fail_call(ncclInvalidArgument);
  return init(comm, nranks, ids[0], rank, read(config, true));
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  if (!comms || count < 1) return ncclInvalidArgument;
  ncclUniqueId id;
  ncclGetUniqueId(&id);  // by its exported name, as NCCL does
  const int before = current_device();
  ncclResult_t result = ncclSuccess;
  group_start();
  for (int rank = 0; rank < count && result == ncclSuccess; ++rank) {
    set_current_device(devices ? devices[rank] : rank);
    result = init(&comms[rank], count, id, rank, read(nullptr, true));
  }
  const ncclResult_t end = group_end();
  set_current_device(before);
  return result == ncclSuccess ? end : result;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int colour, int key, ncclComm_t* out,
                           ncclConfig_t* config) {
  const CommRef parent = find_comm(handle);
  if (!parent || !out || parent->in_progress) return fail_call(ncclInvalidArgument);
  *out = NCCL_COMM_NULL;
  const Configured configured = read(config, parent->blocking);
  const uint32_t ordinal = ++parent->splits;
  const auto child = std::make_shared<CommRef>();
  const auto vote = [=] {
    parent->segment.vote(ordinal, colour, key);
    return ncclSuccess;
  };
  const auto join = [=] {
    if (!parent->segment.wait_votes(ordinal)) return ncclRemoteError;
    if (colour == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    std::vector<int> members;
    const auto key_of = [&](int r) { return parent->segment.vote_of(r, ordinal).key; };
    for (int r = 0; r < parent->nranks; ++r) {
      if (parent->segment.vote_of(r, ordinal).colour == colour) members.push_back(r);
    }
    std::stable_sort(members.begin(), members.end(),
                     [&](int a, int b) { return key_of(a) < key_of(b); });
    *child = make_child(parent, hash({kSplit, ordinal, colour}, parent->id), members, configured);
    *out = child->get();
    return ncclSuccess;
  };
  const auto meet = [=] { return *child ? wait_joined(*child) : ncclSuccess; };
  return add_setup({parent, configured.blocking, {vote, join, meet}});
}

ncclResult_t ncclCommShrink(ncclComm_t handle, int* excluded, int excluded_count, ncclComm_t* out,
                            ncclConfig_t* config, int) {
  const CommRef parent = find_comm(handle);
  if (!parent || !out || parent->in_progress) return fail_call(ncclInvalidArgument);
  std::vector<int> members(static_cast<size_t>(parent->nranks));
  std::iota(members.begin(), members.end(), 0);
  uint64_t id = hash({kShrink, ++parent->shrinks}, parent->id);
  for (int i = 0; i < excluded_count; ++i) {
    if (excluded[i] == parent->rank) return fail_call(ncclInvalidArgument);
    std::erase(members, excluded[i]);
    id = hash({excluded[i]}, id);
  }
  const Configured configured = read(config, parent->blocking);
  const CommRef child = make_child(parent, id, members, configured);
  *out = child.get();
  return add_setup({child, configured.blocking, {[child] { return wait_joined(child); }}});
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* result) {
  const CommRef comm = find_comm(handle);
  if (!comm || !result) return ncclInvalidArgument;
  *result = comm->in_progress        ? ncclInProgress
            : comm->setup_error      ? comm->setup_error.load()
            : comm->segment.broken() ? ncclRemoteError
                                     : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t handle, int* count) {
  const CommRef comm = ready_comm(handle);
  if (!comm || !count) return ncclInvalidArgument;
  *count = comm->nranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t handle, int* rank) {
  const CommRef comm = ready_comm(handle);
  if (!comm || !rank) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t handle, int* device) {
  const CommRef comm = ready_comm(handle);
  if (!comm || !device) return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}

// The communicator that a call ends; never returns where STANDIN_HANG says so.
static CommRef find_to_end(const char* function, ncclComm_t handle) {
  const CommRef comm = find_comm(handle);
  if (comm) meet_fault(function, comm->rank);
  return comm;
}
ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const CommRef comm = find_to_end("ncclCommFinalize", handle);
  if (!comm) return ncclInvalidArgument;
  Mark last;
  {
    const std::lock_guard lock(engine_mutex());
    last = comm->order->last;
  }
  if (last) last->wait();
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  find_to_end("ncclCommDestroy", handle);
  const ncclResult_t result = ncclCommFinalize(handle);
  forget_comm(handle);
  return result;
}
ncclResult_t ncclCommRevoke(ncclComm_t handle, int) {
  const CommRef comm = find_to_end("ncclCommRevoke", handle);
  if (!comm) return ncclInvalidArgument;
  comm->segment.abort();
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  const CommRef comm = find_to_end("ncclCommAbort", handle);
  if (!comm) return ncclInvalidArgument;
  comm->segment.abort();
  forget_comm(handle);
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t handle) {
  const CommRef comm = find_comm(handle);
  if (!comm || !op || !scalar || size_of(type) == 0) return ncclInvalidArgument;
  auto made = std::make_shared<UserReduction>();
  made->type = type;
  made->on_device = residence == ncclScalarDevice;
  made->pointer = scalar;
  if (!made->on_device) std::memcpy(made->immediate, scalar, size_of(type));
  *op = static_cast<ncclRedOp_t>(ncclNumOps + static_cast<int>(comm->reductions.size()));
  comm->reductions.push_back(std::move(made));
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  const CommRef comm = find_comm(handle);
  const auto index = static_cast<size_t>(op) - ncclNumOps;
  if (!comm || op < ncclNumOps || index >= comm->reductions.size()) return ncclInvalidArgument;
  comm->reductions[index] = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t size) {
  if (!pointer) return ncclInvalidArgument;
  use_context(current_device());
  *pointer = allocate(size, cudaMemoryTypeDevice, current_device());
  return *pointer || size == 0 ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* pointer) {
  if (!pointer) return ncclSuccess;
  return release(pointer, cudaMemoryTypeDevice) ? ncclSuccess : ncclInvalidArgument;
}

// Registration changes how NCCL moves data, not which data it moves, so a handle is all it takes.
ncclResult_t ncclCommRegister(ncclComm_t comm, void* buffer, size_t, void** registration) {
  if (!find_comm(comm) || !registration) return ncclInvalidArgument;
  *registration = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void*) {
  return find_comm(comm) ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t, ncclWindow_t* window,
                                    int) {
  if (!find_comm(comm) || !window) return ncclInvalidArgument;
  *window = static_cast<ncclWindow_t>(buffer);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  return find_comm(comm) ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"

PNCCL(ncclGetVersion);
PNCCL(ncclGetErrorString);
PNCCL(ncclGetLastError);
PNCCL(ncclGetUniqueId);
PNCCL(ncclCommInitRank);
PNCCL(ncclCommInitRankConfig);
PNCCL(ncclCommInitRankScalable);
PNCCL(ncclCommInitAll);
PNCCL(ncclCommSplit);
PNCCL(ncclCommShrink);
PNCCL(ncclCommGetAsyncError);
PNCCL(ncclCommCount);
PNCCL(ncclCommUserRank);
PNCCL(ncclCommCuDevice);
PNCCL(ncclCommFinalize);
PNCCL(ncclCommDestroy);
PNCCL(ncclCommRevoke);
PNCCL(ncclCommAbort);
PNCCL(ncclRedOpCreatePreMulSum);
PNCCL(ncclRedOpDestroy);
PNCCL(ncclMemAlloc);
PNCCL(ncclMemFree);
PNCCL(ncclCommRegister);
PNCCL(ncclCommDeregister);
PNCCL(ncclCommWindowRegister);
PNCCL(ncclCommWindowDeregister);
