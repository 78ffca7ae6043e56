// Maps a library's handle (ncclComm_t, cudaGraphExec_t) to our index. Handles are reused after
// destruction, but an index never is: it names one life of a handle.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/base/lock.h"

namespace tprof {

// Lookups take no lock; inserting and erasing do. N is a power of two.
template <std::uint32_t N>
class HandleMap {
 public:
  // Returns 0 if the handle is not known.
  std::uint32_t find(const void* handle) const {
    const auto key = reinterpret_cast<std::uintptr_t>(handle);
    for (std::uint32_t n = 0, i = slot(key); n < N; ++n, i = (i + 1) % N) {
      const std::uintptr_t at = key_[i].load(std::memory_order_acquire);
      if (at == key) return index_[i].load(std::memory_order_relaxed);
      if (at == kEmpty) return 0;
    }
    return 0;
  }

  // Replaces what the handle meant before. False when the table is full.
  bool insert(const void* handle, std::uint32_t index) {
    const auto key = reinterpret_cast<std::uintptr_t>(handle);
    const LockGuard guard(lock_);
    std::uint32_t place = N;
    for (std::uint32_t n = 0, i = slot(key); n < N; ++n, i = (i + 1) % N) {
      const std::uintptr_t at = key_[i].load(std::memory_order_relaxed);
      if (at == key) {
        index_[i].store(index, std::memory_order_release);
        return true;
      }
      if (at == kErased && place == N) place = i;
      if (at == kEmpty) {
        if (place == N) place = i;
        break;
      }
    }
    if (place == N) return false;
    index_[place].store(index, std::memory_order_relaxed);
    key_[place].store(key, std::memory_order_release);
    return true;
  }

  void erase(const void* handle) {
    const auto key = reinterpret_cast<std::uintptr_t>(handle);
    const LockGuard guard(lock_);
    for (std::uint32_t n = 0, i = slot(key); n < N; ++n, i = (i + 1) % N) {
      const std::uintptr_t at = key_[i].load(std::memory_order_relaxed);
      if (at == kEmpty) return;
      if (at != key) continue;
      key_[i].store(kErased, std::memory_order_release);
      forget_erased(i);
      return;
    }
  }

  void clear() {
    for (auto& key : key_) key.store(kEmpty, std::memory_order_relaxed);
  }

 private:
  // Makes erased places empty again if no search goes on behind them: otherwise handles that come
  // and go for ever would fill the table with erased places.
  void forget_erased(std::uint32_t i) {
    if (key_[(i + 1) % N].load(std::memory_order_relaxed) != kEmpty) return;
    while (key_[i].load(std::memory_order_relaxed) == kErased) {
      key_[i].store(kEmpty, std::memory_order_release);
      i = (i + N - 1) % N;
    }
  }

  static constexpr std::uintptr_t kEmpty = 0;
  static constexpr std::uintptr_t kErased = 1;
  static std::uint32_t slot(std::uintptr_t key) {
    return static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 32) % N;
  }

  std::atomic<std::uintptr_t> key_[N];
  std::atomic<std::uint32_t> index_[N];
  Lock lock_{LockOrder::handles};
};

}  // namespace tprof
