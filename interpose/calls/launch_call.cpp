#include "interpose/calls/launch_call.h"

namespace tprof {

bool begin_launch(Thread& t, OpenCall& call, cudaGraphExec_t executable, cudaStream_t stream) {
  call.enter(t, false);
  if (graphs::captured_into(stream) != nullptr) return false;
  const std::uint32_t entry = graphs::launchable(executable);
  Record& r = call.open(t, true);
  const std::uint64_t start_ns = r.start_ns;
  r = {};
  r.start_ns = start_ns;
  r.peer = kNoPeer;
  r.stream = reinterpret_cast<std::uintptr_t>(stream);
  set_comm(r, entry);
  call.in.key = key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, r.comm);
  call.in.row = expect_row(t, call.in.key);
  call.start(t, kMetaLaunch);
  return true;
}

}  // namespace tprof
