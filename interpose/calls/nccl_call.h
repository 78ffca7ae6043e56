// Records an NCCL call that moves data.
#pragma once

#include "interpose/api/functions.h"
#include "interpose/calls/open_call.h"
#include "interpose/record/communicators.h"

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

// The differences between functions.
struct NcclFunction {
  std::uint8_t number;
  Bucket bucket;
  Order order;
  Elements elements;
  std::uint64_t name;  // of a collective, for the signature
};

// Budget for our part of a call: two clock reads (44 ns) + 25 ns.
void begin_nccl(Thread& t, OpenCall& call, NcclFunction function, const NcclArgs& a,
                const void* real_address);

template <Fn kFunction, Bucket kBucket, typename F>
[[gnu::always_inline]] inline ncclResult_t nccl_call(Thread& t, const NcclArgs& a,
                                                     const void* real_address, F&& real) {
  constexpr const FunctionInfo& kInfo = info(kFunction);
  constexpr NcclFunction kThis{number(kFunction), kBucket, kInfo.order, kInfo.elements,
                               kInfo.order == Order::collective ? kInfo.operation : 0};
  OpenCall call(__builtin_return_address(0));
  begin_nccl(t, call, kThis, a, real_address);
  return run(t, call, real);
}

}  // namespace tprof
