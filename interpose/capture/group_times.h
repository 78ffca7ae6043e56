// The device's time of a group's calls: they are issued by its outermost End, so it is around that,
// on each of their streams.
#pragma once

#include <nccl.h>

#include "interpose/capture/groups.h"
#include "interpose/timing/timing.h"

namespace tprof {

class GroupTimes {
 public:
  // Before the outermost End of the thread's group.
  void start(const Thread& t);
  // Behind it.
  void stop(ncclResult_t result);

 private:
  // NCCL makes one kernel of a stream's calls: it has one time. Calls of one row of the ledger
  // share it, and of others nobody knows the shares.
  struct OnStream {
    std::uint64_t stream;
    bool mixed;
    timing::Calls of;
    TimedCall timed;
  };
  static constexpr std::size_t kStreams = 16;  // a device each, as a rule

  OnStream* on_stream(const GroupedCall& call);

  OnStream stream_[kStreams];
  std::size_t streams_ = 0;
};

}  // namespace tprof
