// The calls of a communicator's life, recorded while they last. Such a call is a phase: it ends
// when the call returns, in a group with the outermost End, and on a non-blocking communicator when
// its state is known.
#pragma once

#include <nccl.h>

#include "interpose/api/functions.h"
#include "interpose/record/thread.h"

namespace tprof::comms {

// The facts of such a call that are known before it is made.
struct LifeCall {
  Fn fn;
  std::uint32_t comm = 0;   // that it is given, 0: none, or not known
  std::uint64_t id = 0;     // of the one that it makes, 0: none, or not known
  std::uint32_t seq = 0;    // of a child: its ordinal
  std::int32_t nranks = 0;  // that have to come, 0: not known
  std::int32_t rank = kNoPeer;
};

class OpenPhase {
 public:
  OpenPhase(Thread& t, const LifeCall& call);
  // The call has returned. `made`: the communicator that it made, 0: none, or not known yet.
  // `handle`: the one whose state tells when it is done, if that is still in progress, or the one
  // that stands at `place`.
  void returned(ncclResult_t result, std::uint32_t made = 0, ncclComm_t handle = nullptr,
                ncclComm_t* place = nullptr);

 private:
  Thread& thread_;
  Record record_{};
  std::uint32_t slot_;
};

// How many phases go on though their call has returned.
extern std::atomic<std::uint32_t> g_going_on;

// The outermost End of the thread's group begins, and has returned.
void phases_end(const Thread& t);
void phases_ended(Thread& t, ncclResult_t result);

// The state of a communicator is known (ncclInProgress: it never will be).
void settle_slow(Thread& t, ncclComm_t handle, ncclResult_t state);
inline void settle(Thread& t, ncclComm_t handle, ncclResult_t state) {
  if (g_going_on.load(std::memory_order_relaxed) != 0) [[unlikely]]
    settle_slow(t, handle, state);
}

// True if `place` holds `handle`. The program's memory may be gone by now, so it is not touched.
bool holds(ncclComm_t* place, ncclComm_t handle);

void forget_phases();  // in the child of a fork

}  // namespace tprof::comms
