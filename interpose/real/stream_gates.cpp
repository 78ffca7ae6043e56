#include "interpose/real/stream_gates.h"

#include <new>

#include "interpose/base/hash.h"

namespace tprof::stream_gates {

constinit Gate g_gates[kGates]{};

// The first gate is the legacy stream's.
Gate& gate_of(CUstream stream) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  constexpr std::uintptr_t kLegacy = 1;
  return g_gates[handle <= kLegacy ? 0 : 1 + mix64(handle) % (kGates - 1)];
}

void let_all_leave() {
  for (const Gate& gate : g_gates) gate.wait_until_empty();
}

void after_fork() {
  for (Gate& gate : g_gates) new (&gate) Gate;
}

}  // namespace tprof::stream_gates
