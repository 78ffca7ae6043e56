// A graph launch: it has a line of its own, and a ledger row that multiplies what it executes.
#pragma once

#include "interpose/calls/open_call.h"
#include "interpose/record/graphs.h"

namespace tprof {

// A captured launch becomes a child graph of another graph, and is reported there
// (record/graph_scan.cpp).
template <typename F>
auto launch_call(Thread& t, cudaGraphExec_t executable, cudaStream_t stream, F&& real) {
  const DepthGuard guard(t);
  if (graphs::captured_into(stream) != nullptr) [[unlikely]]
    return real();
  const std::uint32_t entry = graphs::launchable(executable);
  OpenCall call{t, true};
  Record& r = call.record;
  r = {};
  r.peer = kNoPeer;
  r.stream = reinterpret_cast<std::uintptr_t>(stream);
  set_comm(r, entry);
  const auto key = key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, r.comm);
  const auto result = call.run(kMetaLaunch, std::forward<F>(real));
  call.close(key, accepted(result));
  return result;
}

}  // namespace tprof
