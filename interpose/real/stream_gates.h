// Keeps our use of the program's streams apart from calls that destroy a stream or make it capture.
//
// No event of ours may become part of a capture: it would be in the program's graph, and be
// recorded again by each launch. The driver knows whether a stream captures, but another thread may
// begin a capture between its answer and our record. So both are done inside the stream's gate, and
// each call that makes a stream capture closes the gate: cudaStreamBeginCapture in all forms, and
// cudaStreamWaitEvent, by which a stream joins a capture.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "interpose/base/gate.h"
#include "interpose/base/hash.h"

namespace tprof::stream_gates {

// Streams share gates. A gate is closed for one call at a time; others retry.
inline constexpr std::size_t kGates = 64;
inline constinit Gate g_gates[kGates]{};
// The first gate is the legacy stream's.
inline Gate& gate_of(CUstream stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  constexpr std::uintptr_t kLegacy = 1;
  return g_gates[handle <= kLegacy ? 0 : 1 + mix64(handle) % (kGates - 1)];
}

// Held while we query the stream or enqueue something. False: it must not be used now.
class [[nodiscard]] Use : NotCopied {
 public:
  explicit Use(CUstream stream) : gate_(gate_of(stream)), inside_(gate_.enter()) {}
  ~Use() {
    if (inside_) gate_.leave();
  }
  explicit operator bool() const { return inside_; }
  std::uint32_t closings() const { return gate_.closings(); }

 private:
  Gate& gate_;
  bool inside_;
};

// Held around the program's call.
class [[nodiscard]] Closed : NotCopied {
 public:
  explicit Closed(CUstream stream) : gate_(gate_of(stream)) { gate_.close(); }
  ~Closed() { gate_.open(); }

 private:
  Gate& gate_;
};

// Waits until every thread has left every gate that it is in now.
inline void let_all_leave() {
  for (const Gate& gate : g_gates) gate.wait_until_empty();
}
inline void after_fork() {
  for (Gate& gate : g_gates) new (&gate) Gate;
}

}  // namespace tprof::stream_gates
