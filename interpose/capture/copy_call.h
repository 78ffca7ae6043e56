// What a call that makes one copy becomes.
#pragma once

#include "interpose/api/functions.h"
#include "interpose/capture/memory.h"
#include "interpose/capture/open_call.h"
#include "interpose/driver/copy.h"
#include "interpose/format/dtypes.h"
#include "interpose/graphs/graphs.h"

namespace tprof {

[[gnu::always_inline]] inline HostMemory host_memory_of(Bucket bucket, const CopyArgs& a) {
  if (bucket == Bucket::H2D) return memory::kind_of(a.src);
  if (bucket == Bucket::D2H) return memory::kind_of(a.dst);
  return HostMemory::unknown;
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
                                                        std::uint32_t device, bool captured) {
  return key_words(number(fn), bucket, kDtypeByte, captured ? Mode::captured : Mode::direct,
                   bytes_class(bytes), device, 0);
}

template <Fn kFunction, typename F>
auto copy_call(Thread& t, const CopyArgs& a, F&& real) {
  const DepthGuard guard(t);
  cudaGraph_t graph = graphs::captured_into(a.stream);
  const bool captured = graph != nullptr;
  const Bucket bucket = bucket_of(a);

  OpenCall call{t, wants_line(bucket)};
  Record& r = call.record;
  describe_copy(r, t, bucket, a.bytes, a.stream);
  set_flags(r, captured, false, a.sync, host_memory_of(bucket, a), Reduce::none);
  const auto key = copy_key(kFunction, bucket, a.bytes, r.comm, captured);

  const auto result = call.run(number(kFunction), std::forward<F>(real));
  call.close(key, accepted(result));
  if (captured && accepted(result)) [[unlikely]] {
    // From the record, which stands until the thread's next: nothing is carried across the call.
    graphs::captured_call(graph, a.stream,
                          {copy_key(kFunction, r.bucket, r.count, r.comm, true), r.count},
                          graphs::Placed::one_node);
  }
  return result;
}

}  // namespace tprof
