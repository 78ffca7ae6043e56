// Every call looks at this, besides its thread: one cache line. As a rule no extra is wanted, and
// one look tells a call so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tprof {

struct alignas(64) Switches {
  std::atomic<bool> timing{false};
  std::atomic<bool> sites{false};
  // True once a capture has begun in this process. Until then no call asks about captures.
  std::atomic<bool> captures{false};
  std::atomic<bool> unused{false};
  // Changes whenever a communicator's handle changes its meaning.
  std::atomic<std::uint32_t> comm_epoch{1};
};

inline constinit Switches g_switches{};

// True if times or sites are wanted.
inline bool wants_time_or_site() {
  return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(&g_switches), __ATOMIC_RELAXED) !=
         0;
}
// True if nothing of the above is the case.
inline bool is_plain() {
  static_assert(offsetof(Switches, comm_epoch) == sizeof(std::uint32_t));
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(&g_switches), __ATOMIC_RELAXED) ==
         0;
}

}  // namespace tprof
