// Communicators whose handle, or whose making, becomes known only after they are made: children of
// communicators, and those that were made before we could see it.
#pragma once

#include "interpose/record/communicators.h"

namespace tprof::comms {

// Returns the index of a handle, or 0. `real` is a function of the library that owns the handle.
// Through it we ask about a communicator that we have not seen being made, whose id stays unknown.
std::uint32_t find_slow(Thread& t, ncclComm_t handle, const void* real);
inline std::uint32_t find(Thread& t, ncclComm_t handle, const void* real) {
  const std::uint32_t epoch = g_switches.comm_epoch.load(std::memory_order_acquire);
  if (t.last_comm == handle && t.last_comm_epoch == epoch) [[likely]]
    return t.last_comm_index;
  return find_slow(t, handle, real);
}

// A communicator made by ncclCommSplit, Shrink or Grow. `place` is where NCCL puts its handle: at
// once, or when the group ends, or (non-blocking) some time later. `group`: the thread's group, 0
// outside.
struct Child {
  ncclComm_t* place;
  Ids ids;
  std::uint32_t group;
  const char* name;  // commName, or null
};
// `ready`: NCCL said ncclSuccess. While it is ncclInProgress the library must not be asked.
void add_child(const Child& child, bool ready, const void* real);
// Adds the children of a group that has ended.
void add_children_of(std::uint32_t group, bool ready, const void* real);

// Called when the program destroys or aborts it.
void end(ncclComm_t handle, const void* real);

void forget_children();  // in the child of a fork

}  // namespace tprof::comms
