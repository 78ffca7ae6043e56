// A communicator of this process, and the tasks done on it.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/stream.h"
#include "nccl/segment.h"

namespace standin {

struct UserReduction {  // ncclRedOpCreatePreMulSum
  ncclDataType_t type;
  bool on_device;  // read when the work runs
  char immediate[8];
  const void* pointer;
};

enum class Function {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kReduce,
  kAlltoAll,
  kGather,
  kScatter,
  kSend,
  kRecv
};

struct Task {
  Function function;
  const void* send;
  void* recv;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction = ncclSum;
  int peer = 0;  // or root
  std::shared_ptr<UserReduction> scaling{};
};

}  // namespace standin

struct ncclComm {
  uint64_t id;  // equal on all ranks
  int nranks, rank, device;
  bool blocking;
  int32_t ordinal;  // in the tally
  standin::Segment segment;
  std::shared_ptr<standin::Order> order = std::make_shared<standin::Order>();
  uint64_t round = 0;
  uint32_t splits = 0, shrinks = 0;
  std::atomic<bool> in_progress{false};
  std::atomic<ncclResult_t> setup_error{ncclSuccess};
  std::vector<std::shared_ptr<standin::UserReduction>> reductions;
};

namespace standin {

using CommRef = std::shared_ptr<ncclComm>;

// The settings that a program may choose.
struct Configured {
  bool blocking;
  std::string name;
};
CommRef create_comm(uint64_t id, int nranks, int rank, int device, const Configured& configured);
CommRef find_comm(ncclComm_t handle);
void forget_comm(ncclComm_t handle);

// The modelled time of a group's tasks. It is spent before the ranks meet, so that a slow rank
// makes the others wait.
std::chrono::nanoseconds time_of(const ncclComm& comm, const std::vector<Task>& tasks);
// Runs the tasks of one group on one communicator, on a stream's thread.
cudaError_t run_tasks(ncclComm& comm, const std::vector<Task>& tasks);

}  // namespace standin
