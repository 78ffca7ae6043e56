// The hooks that are off unless asked for. Their settings are needed before tracing starts (a
// program takes its pointers before it makes calls), so they are read at the first question.
#pragma once

#include <atomic>
#include <cstdint>

namespace tprof::opt_in {

inline constexpr std::uint8_t kRead = 1;
inline constexpr std::uint8_t kDriver = 2;
inline constexpr std::uint8_t kDlsym = 4;
extern std::atomic<std::uint8_t> g_hooks;

[[gnu::cold, gnu::noinline]] std::uint8_t read();
inline std::uint8_t hooks() {
  const std::uint8_t known = g_hooks.load(std::memory_order_relaxed);
  return known != 0 ? known : read();
}

// TPROF_DRIVER: the driver's copies are counted. Budget: 1 ns.
inline bool driver() {
  return (hooks() & kDriver) != 0;
}
// TPROF_DLSYM: what dlsym gives of NCCL and of the CUDA runtime is wrapped.
inline bool dlsym() {
  return (hooks() & kDlsym) != 0;
}

}  // namespace tprof::opt_in
