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

// Calls that make many copies at once. In the ledger and in lines, a batch counts as one call for
// each direction of its copies, with that direction's bytes.

// An argument as passed: in a register or on the stack. Functions whose prototypes differ between
// CUDA versions pass on the longest list of arguments.
using RawArg = void*;
struct Batch {
  struct Part {
    Bucket bucket;
    HostMemory host;  // of all copies, or unknown
    std::uint64_t bytes;
  };
  static constexpr std::size_t kDirections = 5;
  Part part[kDirections];
  std::size_t parts = 0;
  cudaStream_t stream = nullptr;

  void add(const CopyArgs& copy);
};

// These read the arguments. A batch without parts is not counted, but noted in the coverage: the
// argument layout of the library of `real` is unknown.
Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream);
Batch copies_12(const void* real, RawArg dsts, RawArg srcs, RawArg sizes, RawArg count,
                RawArg eighth, RawArg ninth);

// During the call only its first direction is visible.
void begin_batch(Thread& t, OpenCall& first, std::uint8_t function, const Batch& batch);
void finish_batch(Thread& t, OpenCall& first, std::uint8_t function, const Batch& batch,
                  std::uint16_t result);

template <Fn kFunction, typename F>
[[gnu::always_inline]] inline auto batch_call(Thread& t, const Batch& batch, F&& real) {
  if (batch.parts == 0) return real();
  OpenCall first(__builtin_return_address(0));
  begin_batch(t, first, number(kFunction), batch);
  const auto result = real();
  finish_batch(t, first, number(kFunction), batch, static_cast<std::uint16_t>(result));
  return result;
}

}  // namespace tprof
