#include "nccl/communicator.h"

#include <map>

#include "engine/model.h"
#include "engine/tally.h"

namespace standin {
namespace {

struct Comms {
  std::mutex mutex;
  std::map<ncclComm_t, CommRef> by_handle;
};
Comms& comms() {
  static auto& c = *new Comms;  // leaked: streams may still run when static destructors do
  return c;
}

}  // namespace

CommRef create_comm(uint64_t id, int nranks, int rank, int device, const Configured& configured) {
  // The first communicator's rank is the rank of the process, unless a launcher set one.
  set_first_rank(rank);
  auto* comm = new ncclComm{
      .id = id,
      .nranks = nranks,
      .rank = rank,
      .device = device,
      .blocking = configured.blocking,
      .ordinal = tally::communicator(id, nranks, rank, device, configured.name.c_str()),
      .segment{id, nranks, rank}};
  CommRef ref(comm);
  const std::lock_guard lock(comms().mutex);
  comms().by_handle[comm] = ref;
  return ref;
}

CommRef find_comm(ncclComm_t handle) {
  const std::lock_guard lock(comms().mutex);
  auto found = comms().by_handle.find(handle);
  return found == comms().by_handle.end() ? nullptr : found->second;
}

void forget_comm(ncclComm_t handle) {
  const std::lock_guard lock(comms().mutex);
  comms().by_handle.erase(handle);
}

}  // namespace standin
