// Records a call that makes one copy.
#pragma once

#include "interpose/api/functions.h"
#include "interpose/calls/open_call.h"
#include "interpose/format/dtypes.h"
#include "interpose/real/copy_args.h"
#include "interpose/record/host_memory.h"

namespace tprof {

// The driver is not asked about a captured call.
driver::Direction direction_of(const CopyArgs& a, bool captured);

// The recorded facts of a copy, or of a batch's copies in one direction.
struct OneCopy {
  Bucket bucket;
  HostMemory host;
  std::uint64_t bytes;
  cudaStream_t stream;
  bool sync;
};
// Fills the call's record, and determines its ledger row.
void open_copy(Thread& t, OpenCall& call, std::uint8_t function, const OneCopy& copy,
               bool captured);

void begin_copy(Thread& t, OpenCall& call, std::uint8_t function, const CopyArgs& a);

template <Fn kFunction, typename F>
[[gnu::always_inline]] inline auto copy_call(Thread& t, const CopyArgs& a, F&& real) {
  OpenCall call(__builtin_return_address(0));
  begin_copy(t, call, number(kFunction), a);
  return run(t, call, real);
}

}  // namespace tprof
