// NCCL runs the calls of one communicator one after the other, whatever their streams: a call does
// not begin before the one before it has ended (ncclLaunchPrepare and ncclLaunchFinish make the
// streams wait for each other). That wait is within the call, behind our first event, so the reader
// has to know which call came before.
#pragma once

#include <cstdint>

namespace tprof::timing {

struct InOrder {
  // after: none, where the call before was on the same stream, or there was none.
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::uint64_t kUnknown = UINT64_MAX;  // it was not timed
  std::uint32_t comm = 0;                                // 0: of no communicator
  std::uint64_t after = kNone;
};

namespace comm_order {

// Whether calls of the communicator were seen on more than one stream.
bool on_several_streams(std::uint32_t comm);
// A call of `comm` was put into `stream`; `number`: of its pair, kUnknown: it has none.
InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number);
void after_fork();

}  // namespace comm_order
}  // namespace tprof::timing
