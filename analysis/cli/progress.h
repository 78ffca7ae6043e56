// Shows "merging 41%" on a terminal, for work that takes longer than a second.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace tprof::cli {

class Progress {
 public:
  Progress(std::string what, std::uint64_t total)
      : what_(std::move(what)), total_(std::max<std::uint64_t>(total, 1)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

  // May be called from any thread.
  void operator()(std::uint64_t done) {
    if (!terminal_) return;
    const std::lock_guard lock(mutex_);
    if (Clock::now() < due_) return;
    due_ = Clock::now() + std::chrono::milliseconds(200);
    shown_ = true;
    fmt::print(stderr, "\r{} {}%\033[K", what_, std::min<std::uint64_t>(100, done * 100 / total_));
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  const std::string what_;
  const std::uint64_t total_;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  Clock::time_point due_ = Clock::now() + std::chrono::seconds(1);
  bool shown_ = false;
};

}  // namespace tprof::cli
