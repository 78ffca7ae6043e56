// Keeps our use of a thing apart from a call of the program that ends the thing, or that makes what
// we do with it harmful.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"

namespace tprof {

// We enter, use the thing and leave. The program's call closes, which waits until nobody is inside,
// and opens again. Both sides first store and then load, in the one order of all sequentially
// consistent operations. So of two that come at once, either we see the gate closed, or the other
// sees us inside.
class alignas(64) Gate {
 public:
  // False: the program's call is being made, and does not end soon.
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

  // How often it has been closed. Unchanged since a moment when we were inside: it was not closed.
  std::uint32_t closings() const { return closings_.load(); }
  bool closed() const { return openings_.load() != closings_.load(); }

  // False: somebody is still inside.
  bool close() {
    closings_.fetch_add(1);
    return wait_until_empty();
  }
  void open() { openings_.fetch_add(1); }
  // The wait is bounded, since whoever is inside may be in a driver that hangs, and sleeps. Where
  // all processors are busy, a thread of lower priority stands for tenths of a second by itself.
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
