// Records a call that makes one copy, or many.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/api/functions.h"
#include "interpose/calls/host_memory.h"
#include "interpose/calls/open_call.h"
#include "interpose/format/dtypes.h"
#include "interpose/real/copy_args.h"

namespace tprof {

// The recorded facts of a copy, or of a batch's copies in one direction.
struct OneCopy {
  Bucket bucket;
  HostMemory host;
  std::uint64_t bytes;
  cudaStream_t stream;
  bool sync;
};
void begin_copy(Thread& t, OpenCall& call, std::uint8_t function, const CopyArgs& a);

template <Fn kFunction, typename F>
[[gnu::always_inline]] inline auto copy_call(Thread& t, const CopyArgs& a, F&& real) {
  OpenCall call(__builtin_return_address(0));
  begin_copy(t, call, number(kFunction), a);
  return run(t, call, real);
}

// Calls that make many copies at once, which count as one. If their directions differ, the call is
// not counted, but noted in the coverage.

// An argument as passed: in a register or on the stack. Functions whose prototypes differ between
// CUDA versions pass on the longest list of arguments.
using RawArg = void*;
struct Batch : OneCopy {
  bool counts = false;
};

// These read the arguments. If the argument layout of the library of `real` is unknown, the batch
// is not counted either.
Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream);
Batch copies_12(const void* real, RawArg dsts, RawArg srcs, RawArg sizes, RawArg count,
                RawArg eighth, RawArg ninth);

void begin_batch(Thread& t, OpenCall& call, std::uint8_t function, const Batch& batch);

template <Fn kFunction, typename F>
[[gnu::always_inline]] inline auto batch_call(Thread& t, const Batch& batch, F&& real) {
  if (!batch.counts) return real();
  OpenCall call(__builtin_return_address(0));
  begin_batch(t, call, number(kFunction), batch);
  return run(t, call, real);
}

}  // namespace tprof
