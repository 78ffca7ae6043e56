// Works on several files at a time: one per CPU, 16 at most.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tprof::read {

// Calls f(i) for every i < n from several threads, and then throws what one of them threw.
inline void in_parallel(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        f(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(most, n); ++i) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tprof::read
