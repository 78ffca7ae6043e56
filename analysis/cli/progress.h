// "merging 41%" on a terminal, for work that takes longer than a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace tprof::cli {

class Progress {
 public:
  // Shows nothing where standard error is not a terminal.
  Progress(std::string what, std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // takes the line away

  void operator()(std::uint64_t done);  // from any thread

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  const std::string what_;
  const std::uint64_t total_;
  const bool terminal_;
  Clock::time_point due_;
  bool shown_ = false;
};

}  // namespace tprof::cli
