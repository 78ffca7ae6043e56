// The unused places of an array. Any thread takes one or gives one back, without a lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace tprof {

// `Place` has a `next`, 1-based, 0: none.
template <typename Place>
class FreeList {
 public:
  Place* take(Place* all) {
    std::uint64_t seen = first_.load(std::memory_order_acquire);
    for (;;) {
      const auto index = static_cast<std::uint32_t>(seen);
      if (index == 0) return nullptr;
      Place& first = all[index - 1];
      const std::uint64_t then = ((seen >> 32) + 1) << 32 | std::atomic_ref(first.next).load();
      if (first_.compare_exchange_weak(seen, then, std::memory_order_acq_rel)) return &first;
    }
  }

  void give_back(Place* all, Place& place) {
    const auto index = static_cast<std::uint32_t>(&place - all) + 1;
    std::uint64_t seen = first_.load(std::memory_order_relaxed);
    for (;;) {
      std::atomic_ref(place.next).store(static_cast<std::uint32_t>(seen));
      const std::uint64_t then = ((seen >> 32) + 1) << 32 | index;
      if (first_.compare_exchange_weak(seen, then, std::memory_order_acq_rel)) return;
    }
  }

 private:
  // The low half is the first place, the high half counts changes, so that a place that was taken
  // and given back in the meantime is noticed (ABA).
  std::atomic<std::uint64_t> first_{0};
};

}  // namespace tprof
