// The calls of a communicator's life, visible while they last. Such a call is a phase, which ends
// when the call returns; in a group, with the outermost End; on a non-blocking communicator, when
// its state is known.
#pragma once

#include <nccl.h>

#include "interpose/api/functions.h"
#include "interpose/record/thread.h"

namespace tprof::comms {

// The facts known of such a call before it is made.
struct LifeCall {
  Fn fn;
  std::uint32_t comm = 0;   // its argument, 0: none, or not known
  std::uint64_t id = 0;     // of the new one, 0: none, or not known
  std::uint32_t seq = 0;    // of a child: its ordinal
  std::int32_t nranks = 0;  // of the new one, 0: not known
  std::int32_t rank = kNoPeer;
};

class OpenPhase {
 public:
  OpenPhase(Thread& t, const LifeCall& call);
  // The call has returned. `made`: the new communicator, 0: none, or not known yet. `handle`, or
  // the handle at `place`: if the call is still in progress, the state of this communicator shows
  // when it is done.
  void returned(ncclResult_t result, std::uint32_t made = 0, ncclComm_t handle = nullptr,
                ncclComm_t* place = nullptr);

 private:
  Thread& thread_;
  Record record_{};
  std::uint32_t slot_;
};

// The number of phases that go on after their call's return.
extern std::atomic<std::uint32_t> g_going_on;

// The outermost End of the thread's group begins / has returned.
void phases_end(const Thread& t);
void phases_ended(Thread& t, ncclResult_t result);

// The state of a communicator is known (ncclInProgress: never will be).
void settle_slow(Thread& t, ncclComm_t handle, ncclResult_t state);
inline void settle(Thread& t, ncclComm_t handle, ncclResult_t state) {
  if (g_going_on.load(std::memory_order_relaxed) != 0) [[unlikely]]
    settle_slow(t, handle, state);
}

// True if `place` holds `handle`. Reads it through the kernel, since the program's memory may be
// gone.
bool holds(ncclComm_t* place, ncclComm_t handle);

void forget_phases();  // in the child of a fork

}  // namespace tprof::comms
