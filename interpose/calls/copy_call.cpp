#include "interpose/calls/copy_call.h"

#include <dlfcn.h>

#include "interpose/format/coverage.h"
#include "interpose/real/resolve.h"
#include "interpose/record/transaction.h"
#include "interpose/session/coverage.h"

namespace tprof {
namespace {

// Returns the kind of host memory of a copy between host and device. Wrapped allocations are known
// at no cost, and fast copies use them. Other memory may be pageable, or pinned by a linked-in CUDA
// runtime or the driver's functions, so the driver is asked, with one cuPointerGetAttributes per
// call. This creates no context, does not change the runtime's last error, and costs little
// compared with a copy of pageable memory. It is not asked for captured calls, nor if it just
// returned the direction (cudaMemcpyDefault).
HostMemory host_memory_of(Bucket bucket, const CopyArgs& a, bool captured) {
  const void* host = bucket == Bucket::H2D ? a.src : bucket == Bucket::D2H ? a.dst : nullptr;
  if (host == nullptr) return HostMemory::unknown;
  const HostMemory kind = memory::kind_of(host);
  if (kind != HostMemory::unknown || captured) [[likely]]
    return kind;
  return driver::host_memory(host);
}

// The driver is not asked about a captured call.
driver::Direction direction_of(const CopyArgs& a, bool captured) {
  if (is_named(a.kind)) [[likely]] {
    const Bucket bucket = kDirections[a.kind];
    return {bucket, host_memory_of(bucket, a, captured)};
  }
  driver::Direction asked = driver::direction(a.dst, a.src);
  if (asked.host == HostMemory::unknown) asked.host = host_memory_of(asked.bucket, a, true);
  return asked;
}

bool wants_line(Bucket bucket) {
  return kBuckets[static_cast<std::size_t>(bucket)].lines ||
         session::config().events == EventLines::all;
}

// Fills the call's record, and determines its ledger row.
void open_copy(Thread& t, OpenCall& call, std::uint8_t function, const OneCopy& copy,
               bool captured) {
  Record& r = call.open(t, wants_line(copy.bucket));
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = copy.bytes;
  r.stream = reinterpret_cast<std::uintptr_t>(copy.stream);
  r.seq = 0;
  r.peer = kNoPeer;
  r.group = 0;
  set_comm(r, static_cast<std::uint32_t>(t.device) + 1);
  r.bucket = copy.bucket;
  r.dtype = kDtypeByte;
  set_flags(r, captured, false, copy.sync, copy.host, Reduce::none);
  call.in.key =
      key_words(function, copy.bucket, kDtypeByte, captured ? Mode::captured : Mode::direct,
                bytes_class(copy.bytes), r.comm, 0, copy.host);
  call.in.row = expect_row(t, call.in.key);
}

std::size_t as_size(RawArg w) {
  return reinterpret_cast<std::size_t>(w);
}

}  // namespace

[[gnu::flatten]] void begin_copy(Thread& t, OpenCall& call, std::uint8_t function,
                                 const CopyArgs& a) {
  call.enter(t, false);
  const bool captured = call.is_captured(t, a.stream);
  const auto [bucket, host] = direction_of(a, captured);
  open_copy(t, call, function, {bucket, host, a.bytes, a.stream, a.sync}, captured);
  call.start(t, function);
}

Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream) {
  Batch batch{};
  batch.stream = static_cast<cudaStream_t>(stream);
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr) return batch;
  for (std::size_t i = 0; i < as_size(count); ++i) {
    const std::size_t bytes = static_cast<const std::size_t*>(sizes)[i];
    const auto [bucket, host] = direction_of({.dst = static_cast<const void* const*>(dsts)[i],
                                              .src = static_cast<const void* const*>(srcs)[i],
                                              .bytes = bytes,
                                              .kind = cudaMemcpyDefault,
                                              .stream = batch.stream,
                                              .sync = false},
                                             true);
    if (i != 0 && bucket != batch.bucket) {
      coverage::note(Note::uncounted, "cudaMemcpyBatchAsync");
      batch.counts = false;
      return batch;
    }
    batch.bucket = bucket;
    batch.host = i == 0 || host == batch.host ? host : HostMemory::unknown;
    batch.bytes += bytes;
    batch.counts = true;
  }
  return batch;
}

// CUDA 12 has one more argument, failIdx, before the stream.
Batch copies_12(const void* real, RawArg dsts, RawArg srcs, RawArg sizes, RawArg count,
                RawArg eighth, RawArg ninth) {
  const int cuda = resolve::runtime_version(real);
  if (cuda == 12) return copies(dsts, srcs, sizes, count, ninth);
  if (cuda == 13) return copies(dsts, srcs, sizes, count, eighth);
  Dl_info where{};
  if (dladdr(real, &where) != 0 && where.dli_fname != nullptr) {
    coverage::note(Note::unknown_cudart, where.dli_fname);
  }
  return {};
}

void begin_batch(Thread& t, OpenCall& call, std::uint8_t function, const Batch& batch) {
  call.enter(t, false);
  const bool captured = call.is_captured(t, batch.stream);
  open_copy(t, call, function, batch, captured);
  call.start(t, function);
}

}  // namespace tprof
