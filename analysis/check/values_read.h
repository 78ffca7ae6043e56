// How long a rank's host may have waited for its device before each collective because it read a
// value (`.item()`: a small copy to the host, then a wait without a line).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "read/events.h"

namespace tprof::check {

// Takes the lines of one rank, which come in blocks by thread.
class ValuesRead {
 public:
  static constexpr std::int64_t kNobody = -1;

  // Takes any call of the rank: a thread's next call ends the wait after its copy.
  void see(const read::Event& e) {
    if (const auto copy = copying_.find(e.thread); copy != copying_.end()) {
      items_[copy->second].to_ns = e.ts_ns;
      copying_.erase(copy);
    }
    if (e.bucket != Bucket::D2H || e.failed || e.captured) return;
    copying_[e.thread] = items_.size();
    items_.push_back({.ts_ns = e.ts_ns, .to_ns = kNever, .bytes = e.bytes});
  }
  // Takes a collective, after see(). It asks about the copies since the last collective with the
  // same `asks`.
  void collective(std::int64_t ts_ns, std::int64_t asks, std::size_t number) {
    items_.push_back({.ts_ns = ts_ns, .asks = asks, .number = number});
  }

  // Calls answer(asks, number, ns) for each collective before which the rank read values. A wait
  // ends with the rank's next call on any thread, since autograd has its own thread.
  template <typename Answer>
  void each(const Answer& answer) {
    std::ranges::stable_sort(items_, {}, &Item::ts_ns);
    std::map<std::int64_t, Sums> before;  // by `asks`
    Sums all;
    Item last;
    for (const Item& item : items_) {
      const std::int64_t until = std::min(last.to_ns, item.ts_ns);
      if (until > last.ts_ns) {  // unsigned: a file may hold any times
        all.waited_ns += static_cast<std::uint64_t>(until) - static_cast<std::uint64_t>(last.ts_ns);
      }
      all.bytes += item.bytes;
      last = item;
      if (item.asks == kNobody) continue;
      Sums& since = before[item.asks];
      const std::uint64_t bytes = all.bytes - since.bytes;
      if (bytes != 0 && bytes < kMostBytes) {
        answer(item.asks, item.number,
               static_cast<std::int64_t>(
                   std::clamp<std::uint64_t>(all.waited_ns - since.waited_ns, 1, kNever)));
      }
      since = all;
    }
  }

 private:
  // More is a checkpoint, which the host has to write, and no value that a program prints.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // A copy and the wait after it, or a collective.
  struct Item {
    std::int64_t ts_ns = 0;
    std::int64_t to_ns = 0;
    std::uint64_t bytes = 0;
    std::int64_t asks = kNobody;
    std::size_t number = 0;
  };
  struct Sums {
    std::uint64_t waited_ns = 0;
    std::uint64_t bytes = 0;
  };

  std::map<std::int64_t, std::size_t> copying_;  // by thread: its last call, as index in items_
  std::vector<Item> items_;
};

}  // namespace tprof::check
