// What was said last of each of many handles, as long as there is room: a handle that was not seen
// for long is forgotten, and then nothing is said of it. Nobody waits: who meets another thread at
// the same place gives up.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/base/hash.h"
#include "interpose/format/copy_in_use.h"

namespace tprof::timing {

template <typename Value, std::uint32_t N>
class Recent {
 public:
  void put(std::uint64_t key, const Value& value) {
    Place* oldest = nullptr;
    for (std::uint32_t n = 0; n < kWays; ++n) {
      Place& p = place(key, n);
      const std::uint64_t there = p.key.load(std::memory_order_relaxed);
      if (there == key || there == 0) return write(p, key, value);
      if (oldest == nullptr ||
          p.put.load(std::memory_order_relaxed) < oldest->put.load(std::memory_order_relaxed)) {
        oldest = &p;
      }
    }
    write(*oldest, key, value);
  }

  // False: nothing is known of it.
  bool get(std::uint64_t key, Value& value) {
    for (std::uint32_t n = 0; n < kWays; ++n) {
      Place& p = place(key, n);
      const std::uint32_t before = p.changes.load(std::memory_order_acquire);
      if (p.key.load(std::memory_order_relaxed) != key) continue;
      value = copy_in_use(p.value);
      std::atomic_thread_fence(std::memory_order_acquire);
      const bool same = p.changes.load(std::memory_order_relaxed) == before;
      return before % 2 == 0 && same && p.key.load(std::memory_order_relaxed) == key;
    }
    return false;
  }

  // Calls f(value) for all that is known.
  template <typename F>
  void each(F&& f) {
    for (Place& p : place_) {
      Value value;
      const std::uint64_t key = p.key.load(std::memory_order_relaxed);
      if (key != 0 && get(key, value)) f(value);
    }
  }

 private:
  static constexpr std::uint32_t kWays = 4;
  struct Place {
    std::atomic<std::uint32_t> changes;  // odd: one is under way
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint64_t> put;  // when, by our own count
    Value value;
  };
  Place& place(std::uint64_t key, std::uint32_t n) {
    return place_[(mix64(key) % (N / kWays)) * kWays + n];
  }
  void write(Place& p, std::uint64_t key, const Value& value) {
    std::uint32_t before = p.changes.load(std::memory_order_relaxed);
    if (before % 2 != 0) return;
    if (!p.changes.compare_exchange_strong(before, before + 1, std::memory_order_acquire)) return;
    p.key.store(key, std::memory_order_relaxed);
    p.put.store(puts_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    p.value = value;
    p.changes.store(before + 2, std::memory_order_release);
  }

  std::atomic<std::uint64_t> puts_;
  Place place_[N];
};

}  // namespace tprof::timing
