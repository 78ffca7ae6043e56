// Records a call that makes one copy.
#pragma once

#include "interpose/api/functions.h"
#include "interpose/calls/memory.h"
#include "interpose/calls/open_call.h"
#include "interpose/calls/own_time.h"
#include "interpose/format/dtypes.h"
#include "interpose/real/driver_copy.h"
#include "interpose/record/graphs.h"

namespace tprof {

// Returns the kind of memory on the host's side of a copy between host and device. Wrapped
// allocations tell it at no cost, and copies that have to be fast come from them. They can't prove
// that memory is pageable: CUDA runtimes that are linked in and the driver's own functions pin
// memory past them. So the driver is asked about other addresses, with one cuPointerGetAttributes a
// call. That creates no context, leaves the runtime's last error alone, and costs little beside the
// copy from pageable memory that follows. It is never asked for a captured call, nor if it just
// told the direction (cudaMemcpyDefault).
[[gnu::always_inline]] inline HostMemory host_memory_of(Bucket bucket, const CopyArgs& a,
                                                        bool captured) {
  const void* host = bucket == Bucket::H2D ? a.src : bucket == Bucket::D2H ? a.dst : nullptr;
  if (host == nullptr) return HostMemory::unknown;
  const HostMemory kind = memory::kind_of(host);
  if (kind != HostMemory::unknown || captured) [[likely]]
    return kind;
  return driver::host_memory(host);
}

[[gnu::always_inline]] inline driver::Direction direction_of(const CopyArgs& a, bool captured) {
  if (is_named(a.kind)) [[likely]] {
    const Bucket bucket = kDirections[a.kind];
    return {bucket, host_memory_of(bucket, a, captured)};
  }
  driver::Direction asked = driver::direction(a.dst, a.src);
  if (asked.host == HostMemory::unknown) asked.host = host_memory_of(asked.bucket, a, true);
  return asked;
}

[[gnu::always_inline]] inline bool wants_line(Bucket bucket) {
  return kBuckets[static_cast<std::size_t>(bucket)].lines ||
         session::config().events == EventLines::all;
}

[[gnu::always_inline]] inline void describe_copy(Record& r, const Thread& t, Bucket bucket,
                                                 std::uint64_t bytes, cudaStream_t stream) {
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = bytes;
  r.stream = reinterpret_cast<std::uintptr_t>(stream);
  r.seq = 0;
  r.peer = kNoPeer;
  r.group = 0;
  set_comm(r, static_cast<std::uint32_t>(t.device) + 1);
  r.bucket = bucket;
  r.dtype = kDtypeByte;
}

[[gnu::always_inline]] inline LedgerKey::Words copy_key(Fn fn, Bucket bucket, std::uint64_t bytes,
                                                        std::uint32_t device, bool captured,
                                                        HostMemory host) {
  return key_words(number(fn), bucket, kDtypeByte, captured ? Mode::captured : Mode::direct,
                   bytes_class(bytes), device, 0, host);
}

template <Fn kFunction, typename F>
auto copy_call(Thread& t, const CopyArgs& a, F&& real) {
  const DepthGuard guard(t);
  const std::uint64_t came_ns = take_own_time(t);
  cudaGraph_t graph = graphs::captured_into(a.stream);
  const bool captured = graph != nullptr;
  const auto [bucket, host] = direction_of(a, captured);

  OpenCall call{t, wants_line(bucket)};
  Record& r = call.record;
  describe_copy(r, t, bucket, a.bytes, a.stream);
  set_flags(r, captured, false, a.sync, host, Reduce::none);
  const auto key = copy_key(kFunction, bucket, a.bytes, r.comm, captured, host);

  expect_row(t, key);
  const auto result = call.run(number(kFunction), std::forward<F>(real));
  call.close(key, accepted(result));
  if (came_ns != 0) [[unlikely]]
    add_own_time(came_ns, r.dur_ns);
  if (captured && accepted(result)) [[unlikely]] {
    // Read from the record, which stands until the thread's next: nothing is carried across the
    // call.
    const auto host_then = static_cast<HostMemory>(r.host_memory);
    graphs::captured_call(
        graph, a.stream,
        {copy_key(kFunction, r.bucket, r.count, r.comm, true, host_then), r.count});
  }
  return result;
}

}  // namespace tprof
