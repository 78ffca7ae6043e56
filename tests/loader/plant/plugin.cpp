// Calls NCCL as PyTorch does: from a library that was opened for itself alone (RTLD_LOCAL) and
// brings NCCL along.
#include <nccl.h>

extern "C" void plant_gather();
extern "C" void plant_gather() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 1, id, 0);
  ncclAllGather(&id, &id, 1, ncclInt8, comm, nullptr);
  ncclCommDestroy(comm);
}
