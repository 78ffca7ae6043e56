// Works on several files at a time: one per CPU, 16 at most.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace tprof::read {

// Calls f(i) for every i < n from several threads. f must not throw.
inline void in_parallel(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) f(i);
  };
  const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(most, n); ++i) threads.emplace_back(work);
  work();
}

}  // namespace tprof::read
