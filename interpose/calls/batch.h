// Calls that make many copies at once. In the ledger and in the lines a batch is one call for each
// direction among its copies, with the bytes of that direction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/calls/copy_call.h"

namespace tprof {

// An argument as it travels: a register or a place on the stack. Functions whose prototypes differ
// between versions of CUDA pass on the longest list, so that whatever was given arrives.
using RawArg = void*;
struct Batch {
  struct Part {
    Bucket bucket;
    HostMemory host;  // of all its copies, or unknown
    std::uint64_t bytes;
  };
  static constexpr std::size_t kDirections = 5;
  Part part[kDirections];
  std::size_t parts = 0;
  cudaStream_t stream = nullptr;

  void add(const CopyArgs& copy);
};

// These read the arguments. A batch without parts is not counted: nobody knows how to read what
// was given to the library of `real`, and the coverage notes it.
Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream);
Batch copies_12(const void* real, RawArg dsts, RawArg srcs, RawArg sizes, RawArg count,
                RawArg eighth, RawArg ninth);

// While the call lasts only its first direction is seen.
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
