// The device time of a group's calls. The outermost End issues them, so it is measured around the
// End, on each of their streams.
#pragma once

#include <nccl.h>

#include "interpose/device/timing.h"
#include "interpose/record/groups.h"

namespace tprof {

class GroupTimes {
 public:
  // Called before the outermost End of the thread's group.
  void start(const Thread& t);
  // Called after it.
  void stop(const Thread& t, ncclResult_t result);

 private:
  // NCCL makes one kernel of a stream's calls, so they have one time. Calls of one ledger row share
  // it. The shares of different rows are not known, only the total.
  struct OnStream {
    CUstream stream;
    device::Calls of;
    TimedCall timed;
  };
  static constexpr std::size_t kStreams = 16;  // usually one per device

  OnStream* on_stream(const GroupedCall& call);
  void pass_by_others(const Thread& t) const;

  OnStream stream_[kStreams];
  std::size_t streams_ = 0;
};

}  // namespace tprof
