// A graph launch: it has a line of its own, and a ledger row that multiplies what it executes.
#pragma once

#include "interpose/calls/open_call.h"

namespace tprof {

// Enters the call. False: the launch is captured. It becomes a child graph of another graph, and is
// reported there (record/graph_scan.cpp).
bool begin_launch(Thread& t, OpenCall& call, cudaGraphExec_t executable, cudaStream_t stream);

template <typename F>
[[gnu::always_inline]] inline auto launch_call(Thread& t, cudaGraphExec_t executable,
                                               cudaStream_t stream, F&& real) {
  OpenCall call(__builtin_return_address(0));
  if (begin_launch(t, call, executable, stream)) [[likely]]
    return run(t, call, real);
  const auto result = real();
  --t.depth;
  return result;
}

}  // namespace tprof
