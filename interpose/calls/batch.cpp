#include "interpose/calls/batch.h"

#include <dlfcn.h>

#include <span>

#include "interpose/format/coverage.h"
#include "interpose/real/resolve.h"
#include "interpose/session/coverage.h"

namespace tprof {
namespace {

std::size_t as_size(RawArg w) {
  return reinterpret_cast<std::size_t>(w);
}
}  // namespace

void Batch::add(const CopyArgs& copy) {
  const auto [bucket, host] = direction_of(copy, true);
  for (Part& p : std::span(part, parts)) {
    if (p.bucket != bucket) continue;
    p.bytes += copy.bytes;
    if (p.host != host) p.host = HostMemory::unknown;
    return;
  }
  part[parts++] = {bucket, host, copy.bytes};
}

Batch copies(RawArg dsts, RawArg srcs, RawArg sizes, RawArg count, RawArg stream) {
  Batch batch;
  batch.stream = static_cast<cudaStream_t>(stream);
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr) return batch;
  for (std::size_t i = 0; i < as_size(count); ++i) {
    batch.add({.dst = static_cast<const void* const*>(dsts)[i],
               .src = static_cast<const void* const*>(srcs)[i],
               .bytes = static_cast<const std::size_t*>(sizes)[i],
               .kind = cudaMemcpyDefault,
               .stream = batch.stream,
               .sync = false});
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
    coverage::note(session::mapping().head(), Note::unknown_cudart, where.dli_fname);
  }
  return {};
}

void begin_batch(Thread& t, OpenBatch& open, Fn fn, const Batch& batch) {
  ++t.depth;
  open.graph = graphs::captured_into(batch.stream);
  const bool captured = open.graph != nullptr;
  const std::uint16_t site = sites::on() ? sites::site_of(open.caller) : std::uint16_t{0};
  open.start_ns = now_ns();
  bool all_in_ring = true;
  for (std::size_t i = 0; i < batch.parts; ++i) {
    const Batch::Part& part = batch.part[i];
    HeldCall& held = open.part[i];
    Record& r = held.call;
    r = {};
    describe_copy(r, t, part.bucket, part.bytes, batch.stream);
    r.site = site;
    set_flags(r, captured, false, false, part.host, Reduce::none);
    r.start_ns = open.start_ns;
    held.key = copy_key(number(fn), part.bucket, part.bytes, r.comm, captured, part.host);
    held.wants_line = wants_line(part.bucket);
    bool in_ring = false;
    Record& place = next_record(t, held.wants_line, in_ring);
    held.record = in_ring ? &place : nullptr;
    all_in_ring = all_in_ring && in_ring;
    if (!in_ring) continue;
    place = r;
    publish(t, place, number(fn), true);
  }
  if (!all_in_ring) {
    Transaction transaction(t);
    for (const HeldCall& held : std::span(open.part, batch.parts)) held.hold(transaction);
  }
  if (!device::on()) return;
  // A batch in several directions has one time, and no share per direction.
  t.timed = {nullptr, !captured, TimingLost::mixed};
  if (batch.parts == 1) start_timing(t, open.part[0].call, number(fn));
}

void finish_batch(Thread& t, OpenBatch& open, const Batch& batch, bool ok, std::uint16_t result) {
  const HeldCall& first = open.part[0];
  if (device::on()) stop_timing(t, first.call, first.key, ok, batch.parts);
  const std::uint64_t duration = now_ns() - open.start_ns;
  {
    Transaction transaction(t);
    for (HeldCall& held : std::span(open.part, batch.parts)) {
      set_outcome(held.call, duration, result);
      if (held.record != nullptr) set_outcome(*held.record, duration, result);
      held.release(transaction, ok, 0);
    }
  }
  for (std::size_t i = 0; open.graph != nullptr && ok && i < batch.parts; ++i) {
    graphs::captured_call(open.graph, batch.stream, {open.part[i].key, batch.part[i].bytes});
  }
  --t.depth;
}

}  // namespace tprof
