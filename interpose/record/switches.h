// The switches that every call reads besides its thread, in one cache line. Usually no extra is on,
// and one check shows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tprof {

struct alignas(64) Switches {
  std::atomic<bool> timing{false};
  std::atomic<bool> sites{false};
  // True once a capture has begun in this process. Until then calls need not ask about captures.
  std::atomic<bool> captures{false};
  std::atomic<bool> unused{false};
  // Changes whenever a communicator's handle gets another meaning.
  std::atomic<std::uint32_t> comm_epoch{1};
};

inline constinit Switches g_switches{};

// True if calls are timed or their sites recorded.
inline bool wants_time_or_site() {
  return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(&g_switches), __ATOMIC_RELAXED) !=
         0;
}
// True if none of the above is on.
inline bool is_plain() {
  static_assert(offsetof(Switches, comm_epoch) == sizeof(std::uint32_t));
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(&g_switches), __ATOMIC_RELAXED) ==
         0;
}

}  // namespace tprof
