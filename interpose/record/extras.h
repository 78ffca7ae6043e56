// Extras that may be wanted of a call besides its record. They are off as a rule, and one look
// tells a call that none of them is wanted.
#pragma once

#include <atomic>
#include <cstdint>

namespace tprof {

struct alignas(2) Extras {
  std::atomic<bool> timing{false};
  std::atomic<bool> sites{false};
};
static_assert(sizeof(Extras) == sizeof(std::uint16_t));

inline constinit Extras g_extras{};

inline bool any_extras() {
  return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(&g_extras), __ATOMIC_RELAXED) != 0;
}

}  // namespace tprof
