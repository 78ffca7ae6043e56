// NCCL runs the calls of one communicator one after the other, whatever their streams. It makes the
// streams wait for each other in ncclLaunchPrepare and ncclLaunchFinish, so a call does not begin
// before the previous one has ended. This wait is within the call, after our first event, so the
// reader has to know which call came before.
#pragma once

#include <cstdint>

namespace tprof::device {

struct InOrder {
  // `after` is kNone if the previous call was on the same stream, or if there was none.
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::uint64_t kUnknown = UINT64_MAX;  // the previous call was not timed
  std::uint32_t comm = 0;                                // 0: no communicator
  std::uint64_t after = kNone;
};

namespace comm_order {

// True if calls of the communicator were seen on more than one stream.
bool on_several_streams(std::uint32_t comm);
// Notes that a call of `comm` was put into `stream`, and returns which call it comes after.
// `number` is its pair's number, or kUnknown if it has no pair.
InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number);
void after_fork();

}  // namespace comm_order
}  // namespace tprof::device
