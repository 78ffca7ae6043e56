// Records an NCCL call that moves data.
#pragma once

#include "interpose/api/functions.h"
#include "interpose/calls/open_call.h"
#include "interpose/calls/own_time.h"
#include "interpose/format/dtypes.h"
#include "interpose/record/graphs.h"
#include "interpose/record/groups.h"
#include "interpose/record/late_communicators.h"

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

// Budget for our part of a call: two clock reads (44 ns) + 25 ns.
template <Fn kFunction, Bucket kBucket, typename F>
ncclResult_t nccl_call(Thread& t, const NcclArgs& a, const void* real_address, F&& real) {
  constexpr const FunctionInfo& function = info(kFunction);
  constexpr bool kCollective = function.order == Order::collective;
  constexpr std::uint64_t kName = kCollective ? fnv1a(function.operation) : 0;
  const DepthGuard guard(t);
  const std::uint64_t came_ns = take_own_time(t);
  cudaGraph_t graph = graphs::captured_into(a.stream);
  const std::uint32_t comm = comms::find(t, a.comm, real_address);
  comms::State& state = comms::state(comm);

  comms::Counter* counter = nullptr;
  if (is_own_comm(comm)) {
    if constexpr (kCollective) counter = &state.seq;
    if constexpr (function.order == Order::send || function.order == Order::recv) {
      counter = comms::peer_counter(state, a.peer, function.order == Order::recv);
    }
  }
  const std::uint64_t seq = comms::take(counter);

  OpenCall call{t, true};
  Record& r = call.record;
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = a.count;
  r.stream = reinterpret_cast<std::uintptr_t>(a.stream);
  r.peer = a.peer;
  r.group = t.group;
  set_comm(r, comm);
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
  set_flags(r, graph != nullptr, in_place, false, HostMemory::unknown, a.reduce);
  r.seq = seq;
  const std::uint64_t signature_name = counter == nullptr ? 0 : kName;

  const auto key =
      key_words(number(kFunction), kBucket, r.dtype,
                graph != nullptr ? Mode::captured : Mode::direct, bytes_class(bytes), comm, 0);

  expect_row(t, key);
  if (signature_name != 0) expect_row(t, signature_row(comm, seq));
  const ncclResult_t result = call.run(number(kFunction), std::forward<F>(real));
  if (t.group_depth != 0) {
    add_to_group(t, {{call.in_ring ? &r : nullptr, r, key, true}, signature_name, counter, graph},
                 r);
    return result;
  }
  const bool ok = accepted(result);
  call.close(key, ok, signature_name);
  if (came_ns != 0) [[unlikely]]
    add_own_time(came_ns, r.dur_ns);
  if (!ok) comms::give_back(counter, r.seq);
  if (graph != nullptr && ok) [[unlikely]]
    graphs::captured_call(graph, a.stream, {key, a.count});
  return result;
}

}  // namespace tprof
