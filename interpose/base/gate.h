// Keeps our use of an object apart from a program's call that destroys it or makes our use harmful.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"

namespace tprof {

// We enter, use the object and leave. The program's call closes the gate, waits until all have
// left, and opens it again. Both sides store first and then load, sequentially consistent: if both
// come at once, either we see the gate closed, or the other side sees us inside.
class alignas(64) Gate {
 public:
  // Returns false if the program's call is in progress and does not end soon.
  bool enter() {
    constexpr int kTries = 1000;  // tens of microseconds
    for (int i = 0; i < kTries; ++i) {
      inside_.fetch_add(1);
      const std::uint32_t closings = closings_.load();
      if (openings_.load() == closings) return true;
      leave();
    }
    return false;
  }
  void leave() { inside_.fetch_sub(1); }

  // How often it was closed. If unchanged since we were inside, it was not closed in between.
  std::uint32_t closings() const { return closings_.load(); }
  bool closed() const { return openings_.load() != closings_.load(); }

  // Returns false if a thread is still inside.
  bool close() {
    closings_.fetch_add(1);
    return wait_until_empty();
  }
  void open() { openings_.fetch_add(1); }
  // The wait is bounded, since a thread inside may hang in the driver, and it sleeps: on busy
  // processors a thread of lower priority may not run for tenths of a second.
  bool wait_until_empty() const {
    constexpr std::uint64_t kLongestNs = 1'000'000'000;
    if (inside_.load() == 0) return true;
    const KeepErrno keep_errno;
    const std::uint64_t until = now_ns() + kLongestNs;
    timespec pause{0, 20'000};
    while (inside_.load() != 0 && now_ns() < until) {
      syscall(SYS_nanosleep, &pause, nullptr);
      if (pause.tv_nsec < 1'000'000) pause.tv_nsec *= 2;
    }
    return inside_.load() == 0;
  }

 private:
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> closings_{0};
  std::atomic<std::uint32_t> openings_{0};
};

}  // namespace tprof
