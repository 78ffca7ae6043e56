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
  bool known = true;  // false: what the arguments mean is not known, and nothing is counted

  void add(Bucket bucket, HostMemory host, std::uint64_t bytes);
  void add(const CopyArgs& copy);
};

// These read the arguments. `cuda`: the major version of the library that serves the call, 0 if
// that is not known.
Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream);
Batch copies_12(int cuda, RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg eighth,
                RawArg ninth);
Batch prefetch_12(int cuda, RawArg bytes, RawArg fourth, RawArg fifth);

// Notes in the coverage that a call to a library of unknown version was not read.
[[gnu::cold]] void note_unknown_version(const void* real);

// A batch whose call is in progress: a held call for each of its directions.
struct OpenBatch {
  HeldCall part[Batch::kDirections];
  std::uint64_t start_ns;
  std::uint16_t site;
};
void open_batch(Thread& t, Fn fn, const Batch& batch, bool captured, OpenBatch& open);
void close_batch(Thread& t, const Batch& batch, OpenBatch& open, bool ok, std::uint16_t result);

template <typename F>
[[gnu::always_inline]] inline auto batch_call(Thread& t, Fn fn, const Batch& batch, F&& real) {
  if (!batch.known || batch.parts == 0) return real();
  const DepthGuard guard(t);
  cudaGraph_t graph = graphs::captured_into(batch.stream);
  OpenBatch open;
  open.site = sites::on() ? sites::site_of(__builtin_return_address(0)) : std::uint16_t{0};
  open_batch(t, fn, batch, graph != nullptr, open);
  const HeldCall& first = open.part[0];
  if (timing::on()) [[unlikely]] {
    // A batch in several directions has one time, and no share per direction.
    t.timed = {nullptr, graph == nullptr, TimingLost::mixed};
    if (batch.parts == 1) start_timing(t, first.call, number(fn));
  }
  const auto result = real();
  if (timing::on()) [[unlikely]]
    stop_timing(t, first.call, first.key, accepted(result), batch.parts);
  close_batch(t, batch, open, accepted(result), static_cast<std::uint16_t>(result));
  for (std::size_t i = 0; graph != nullptr && accepted(result) && i < batch.parts; ++i) {
    graphs::captured_call(graph, batch.stream, {open.part[i].key, batch.part[i].bytes});
  }
  return result;
}

}  // namespace tprof
