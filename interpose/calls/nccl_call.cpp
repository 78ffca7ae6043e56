#include "interpose/calls/nccl_call.h"

#include "interpose/format/dtypes.h"

namespace tprof {
namespace {

// Null: calls of this kind, or on this communicator, have no sequence number.
comms::Counter* counter_of(comms::State& state, std::uint32_t comm, Order order,
                           std::int32_t peer) {
  if (order == Order::collective && comm != 0) [[likely]]
    return &state.seq;
  if (order == Order::none || comm == 0) return nullptr;
  return comms::peer_counter(state, peer, order == Order::recv);
}

}  // namespace

void begin_nccl(Thread& t, OpenCall& call, NcclFunction function, const NcclArgs& a,
                const void* real_address) {
  call.enter(t, true);
  const bool captured = call.is_captured(t, a.stream);
  const std::uint32_t comm = comms::find(t, a.comm, real_address);
  comms::State& state = comms::state(comm);
  call.counter = counter_of(state, comm, function.order, a.peer);
  const std::uint64_t seq = comms::take(call.counter);

  Record& r = call.open(t, true);
  r.txn = 0;
  set_outcome(r, 0, 0);
  r.count = a.count;
  r.stream = reinterpret_cast<std::uintptr_t>(a.stream);
  r.seq = seq;
  r.peer = a.peer;
  r.group = t.group;
  set_comm(r, comm);
  r.bucket = function.bucket;
  const std::uint8_t dtype = dtype_from_nccl(static_cast<int>(a.type));
  r.dtype = dtype;

  const std::uint64_t size = a.count * dtype_size(dtype);
  const auto ranks = static_cast<std::uint64_t>(comm == 0 ? 1 : state.nranks);
  const std::uint64_t bytes =
      function.elements == Elements::count_times_ranks ? size * ranks : size;
  // In place means: the part of a gather or scatter is at the rank's offset in the whole buffer.
  const std::uint64_t own = static_cast<std::uint64_t>(state.rank) * size;
  const char* send =
      static_cast<const char*>(a.send) + (function.bucket == Bucket::RESHARDING ? own : 0);
  const char* recv =
      static_cast<const char*>(a.recv) + (function.bucket == Bucket::ALLGATHER ? own : 0);
  const bool in_place = function.order != Order::none && send == recv;
  set_flags(r, captured, in_place, false, HostMemory::unknown, a.reduce);

  call.in.key = key_words(function.number, function.bucket, dtype,
                          captured ? Mode::captured : Mode::direct, bytes_class(bytes), comm, 0);
  call.in.row = expect_row(t, call.in.key);
  if (call.counter != nullptr && function.name != 0) {
    call.in.name = function.name;
    call.in.signature_key = signature_row(comm, seq);
    call.in.signature_row = expect_row(t, call.in.signature_key);
  }
  call.grouped = t.group_depth != 0;
  call.start(t, function.number);
}

}  // namespace tprof
