// What a call that moves data becomes: an open record before the real call, a transaction after it.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <utility>

#include "interpose/api/functions.h"
#include "interpose/capture/communicators.h"
#include "interpose/capture/copy_args.h"
#include "interpose/capture/groups.h"
#include "interpose/capture/memory.h"
#include "interpose/capture/thread.h"
#include "interpose/format/dtypes.h"
#include "interpose/graphs/graphs.h"

namespace tprof {

constexpr Reduce reduce_of(ncclRedOp_t op) {
  const int value = static_cast<int>(op);
  return value >= 0 && value <= 4 ? static_cast<Reduce>(value + 1) : Reduce::custom;
}

struct NcclArgs {
  const void* send;
  const void* recv;
  std::size_t count;
  ncclDataType_t type;
  ncclComm_t comm;
  cudaStream_t stream;
  std::int32_t peer = kNoPeer;
  Reduce reduce = Reduce::none;
};

constexpr bool accepted(ncclResult_t result) {
  return nccl_accepted(static_cast<std::uint64_t>(result));
}
constexpr bool accepted(cudaError_t result) {
  return result == cudaSuccess;
}
constexpr bool accepted(CUresult result) {
  return result == CUDA_SUCCESS;
}

// The ledger's part of one finished call.
[[gnu::always_inline]] inline void enter(Transaction& transaction, LedgerKey::Words key,
                                         const Record& r, bool ok, std::uint64_t signature_name) {
  LedgerValues& v = transaction.values(key);
  if (!ok) {
    ++v.failed;
    return;
  }
  ++v.calls;
  v.count += r.count;
  v.host_ns += r.dur_ns;
  if (r.dur_ns > v.host_ns_max) v.host_ns_max = r.dur_ns;
  if (signature_name == 0) return;
  const auto signature = key_words(kMetaSignature, Bucket{}, 0, Mode::direct,
                                   static_cast<std::int8_t>(signature_bin(r.seq)), r.comm, 0);
  LedgerValues& s = transaction.values(signature);
  ++s.calls;
  s.count += signature_mix(r.seq, signature_name, r.count, r.dtype, r.peer, r.reduce);
}

inline void count_ring_drop(Transaction& transaction) {
  ++transaction.values(key_words(kMetaDropped, Bucket{}, 0, Mode::direct, 0, 0, 0)).calls;
}

// The real call, between the clocks: its record is open while it runs.
template <typename F>
[[gnu::always_inline]] inline auto timed(Thread& t, Record& r, std::uint8_t function, bool in_ring,
                                         F&& real) {
  r.start_ns = now_ns();
  publish(t, r, function, in_ring);
  const auto result = real();
  set_outcome(r, now_ns() - r.start_ns, static_cast<std::uint16_t>(result));
  return result;
}

// It has returned, and is no part of a group: counted, and its record closed, at once. `lost_line`:
// it was to have a line, and the ring was full.
[[gnu::always_inline]] inline void settle(Thread& t, Record& r, LedgerKey::Words key, bool ok,
                                          std::uint64_t name, bool lost_line) {
  Transaction transaction(t);
  enter(transaction, key, r, ok, name);
  transaction.close(r);
  if (lost_line) count_ring_drop(transaction);
}

// Budget of what is ours in a call: two clock reads (44 ns) + 25 ns.
template <Fn kFunction, Bucket kBucket, typename F>
ncclResult_t nccl_call(Thread& t, const NcclArgs& a, const void* real_address, F&& real) {
  constexpr const FunctionInfo& function = info(kFunction);
  constexpr bool kCollective = function.order == Order::collective;
  constexpr std::uint64_t kName = kCollective ? name_hash(function.operation) : 0;
  const DepthGuard guard(t);
  const GraphId graph = graphs::capturing(a.stream).graph;
  const std::uint32_t comm = comms::find(t, a.comm, real_address);
  comms::State& state = comms::state(comm);

  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = a.count;
  r.stream = reinterpret_cast<std::uintptr_t>(a.stream);
  r.peer = a.peer;
  r.group = group_number(t);
  r.comm = comm;
  r.bucket = kBucket;
  r.dtype = dtype_from_nccl(static_cast<int>(a.type));

  const std::uint64_t size = a.count * dtype_size(r.dtype);
  const auto ranks = static_cast<std::uint64_t>(comm == 0 ? 1 : state.nranks);
  std::uint64_t bytes = size;
  if constexpr (function.elements == Elements::count_times_ranks) bytes *= ranks;
  const auto* send = static_cast<const char*>(a.send);
  const auto* recv = static_cast<const char*>(a.recv);
  const std::uint64_t own = static_cast<std::uint64_t>(state.rank) * size;
  bool in_place = function.order != Order::none && send == recv;
  if constexpr (kBucket == Bucket::ALLGATHER) in_place = send == recv + own;
  if constexpr (kBucket == Bucket::RESHARDING) in_place = recv == send + own;
  set_flags(r, graph != 0, in_place, false, HostMemory::unknown, a.reduce);
  comms::Counter* counter = nullptr;
  if (is_own_comm(comm)) {
    if constexpr (kCollective) counter = &state.seq;
    if constexpr (function.order == Order::send || function.order == Order::recv) {
      counter = comms::peer_counter(state, a.peer, function.order == Order::recv);
    }
  }
  r.seq = comms::take(counter);
  const std::uint64_t signature_name = counter == nullptr ? 0 : kName;

  const auto key =
      key_words(number(kFunction), kBucket, r.dtype, graph != 0 ? Mode::captured : Mode::direct,
                bytes_class(bytes), comm, 0);

  const ncclResult_t result = timed(t, r, number(kFunction), in_ring, std::forward<F>(real));
  if (t.group_depth != 0) {
    add_to_group(t, {in_ring ? &r : nullptr, r, key, signature_name, counter, graph}, r);
    return result;
  }
  const bool ok = accepted(result);
  settle(t, r, key, ok, signature_name, !in_ring);
  if (!ok) comms::give_back(counter, r.seq);
  if (graph != 0 && ok) [[unlikely]]
    graphs::captured_alone(graph, {key, a.count});
  return result;
}

[[gnu::always_inline]] inline Bucket bucket_of(const CopyArgs& a) {
  static constexpr Bucket kDirections[] = {Bucket::H2H, Bucket::H2D, Bucket::D2H, Bucket::D2D};
  const auto kind = static_cast<unsigned>(a.kind);
  return kind < std::size(kDirections) ? kDirections[kind] : memory::direction(a.dst, a.src);
}

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
  r.comm = static_cast<std::uint32_t>(t.device) + 1;
  r.bucket = bucket;
  r.dtype = kDtypeByte;
}

[[gnu::always_inline]] inline LedgerKey::Words copy_key(Fn fn, Bucket bucket, std::uint64_t bytes,
                                                        std::uint32_t device, bool captured) {
  return key_words(number(fn), bucket, kDtypeByte, captured ? Mode::captured : Mode::direct,
                   bytes_class(bytes), device, 0);
}

// A copy that is made now or, `captured`, put into a graph by the real call: `placed` is told as
// what a launch will execute it.
template <Fn kFunction, typename F, typename G>
[[gnu::always_inline]] inline auto record_copy(Thread& t, const CopyArgs& a, bool captured,
                                               F&& real, G&& placed) {
  const Bucket bucket = bucket_of(a);
  const bool line = wants_line(bucket);

  bool in_ring = false;
  Record& r = next_record(t, line, in_ring);
  describe_copy(r, t, bucket, a.bytes, a.stream);
  set_flags(r, captured, false, a.sync, host_memory_of(bucket, a), Reduce::none);
  const auto key = copy_key(kFunction, bucket, a.bytes, r.comm, captured);

  const auto result = timed(t, r, number(kFunction), in_ring, std::forward<F>(real));
  settle(t, r, key, accepted(result), 0, line && !in_ring);
  if (captured && accepted(result)) [[unlikely]] {
    // From the record, which stands until the thread's next: nothing is carried across the call.
    placed(graphs::Call{copy_key(kFunction, r.bucket, r.count, r.comm, true), r.count});
  }
  return result;
}

template <Fn kFunction, typename F>
auto copy_call(Thread& t, const CopyArgs& a, F&& real) {
  const DepthGuard guard(t);
  const graphs::Capture capture = graphs::capturing(a.stream);
  return record_copy<kFunction>(
      t, a, static_cast<bool>(capture), std::forward<F>(real),
      [&](const graphs::Call& call) { graphs::captured_copy(capture, a.stream, call); });
}

// A copy that is put into a graph by hand: `placed` is told once it is there.
template <Fn kFunction, typename F, typename G>
auto node_call(Thread& t, const CopyArgs& a, F&& real, G&& placed) {
  const DepthGuard guard(t);
  return record_copy<kFunction>(t, a, true, std::forward<F>(real), placed);
}

// A graph launch has a line of its own and a ledger row that multiplies what it executes. One that
// is captured becomes a part of another graph.
template <typename F>
cudaError_t launch_call(Thread& t, cudaGraphExec_t handle, cudaStream_t stream, F&& real) {
  const DepthGuard guard(t);
  if (const graphs::Capture capture = graphs::capturing(stream)) [[unlikely]] {
    const cudaError_t result = real();
    if (accepted(result)) graphs::captured_launch(capture.graph, handle);
    return result;
  }
  const std::uint32_t launched = graphs::launchable(t, handle);
  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  r = {};
  r.peer = kNoPeer;
  r.stream = reinterpret_cast<std::uintptr_t>(stream);
  r.comm = launched;
  const auto key = key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, r.comm);

  const cudaError_t result = timed(t, r, kMetaLaunch, in_ring, std::forward<F>(real));
  settle(t, r, key, accepted(result), 0, !in_ring);
  return result;
}

}  // namespace tprof
