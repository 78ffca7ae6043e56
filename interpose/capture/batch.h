// Calls that make many copies at once. In the ledger and in the lines a batch is one call for each
// direction among its copies, with the bytes of that direction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/capture/calls.h"
#include "interpose/capture/copy_args.h"

namespace tprof {

// An argument as it travels: a register or a place on the stack. Functions whose prototypes differ
// between versions of CUDA pass on the longest list, so that whatever was given arrives.
using Word = void*;
inline Word one() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a count that travels as all arguments do
  return reinterpret_cast<Word>(1);
}

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

// How the arguments read. `cuda`: the major version of the library that serves the call, 0 if that
// is not known.
Batch copies(Word dsts, Word srcs, Word sizes, Word count, Word stream);
Batch copies_12(int cuda, Word dsts, Word srcs, Word sizes, Word count, Word eighth, Word ninth);
Batch boxes(Word operations, Word count, Word stream);
Batch fabric_copies(Word operations, Word count, Word stream);
Batch boxes_12(int cuda, Word count, Word operations, Word fourth, Word fifth);
Batch prefetch(Word bytes, Word stream);
Batch prefetch_12(int cuda, Word bytes, Word fourth, Word fifth);
Batch prefetches(Word sizes, Word count, Word stream);

// A call to a library of unknown version was not read: it goes into the coverage.
[[gnu::cold]] void note_unknown_version(const void* real);

// A batch whose call is going on.
struct OpenBatch {
  Record call[Batch::kDirections];
  Record* record[Batch::kDirections];  // in the ring, or null if it has none
  LedgerKey::Words key[Batch::kDirections];
  bool wants_line[Batch::kDirections];
  std::uint64_t start_ns;
};
void open_batch(Thread& t, Fn fn, const Batch& batch, bool captured, OpenBatch& open);
void close_batch(Thread& t, const Batch& batch, OpenBatch& open, cudaError_t result);

template <typename F>
cudaError_t batch_call(Thread& t, Fn fn, const Batch& batch, F&& real) {
  if (!batch.known || batch.parts == 0) return real();
  const DepthGuard guard(t);
  const graphs::Capture capture = graphs::capturing(batch.stream);
  OpenBatch open;
  open_batch(t, fn, batch, static_cast<bool>(capture), open);
  const cudaError_t result = real();
  close_batch(t, batch, open, result);
  if (capture && accepted(result)) {
    for (std::size_t i = 0; i < batch.parts; ++i) {
      graphs::captured_copy(capture, batch.stream, {open.key[i], batch.part[i].bytes});
    }
  }
  return result;
}

}  // namespace tprof
