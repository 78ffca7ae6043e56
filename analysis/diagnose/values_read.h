// For how long the host of a rank may have waited for its device before each of its collectives:
// behind values that it read (`.item()`: a small copy to the host, and a wait that has no line).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "read/events.h"

namespace tprof::diagnose {

// It looks at one rank. `Call` is whatever comes back with the answer. Threads write their lines in
// blocks, so these are put in the order of time first, as many as there is room for.
template <typename Call>
class ValuesRead {
 public:
  // Copies since the last collective that asked, as one communicator sees them.
  struct Since {
    std::uint64_t waited_ns = 0;
    std::uint64_t bytes = 0;
  };
  using Answer = std::function<void(const Call&, std::int64_t ns)>;  // ns of 0: it read none

  explicit ValuesRead(Answer answer) : answer_(std::move(answer)) {}

  // Any call of the rank: the next of its thread ends the wait behind a copy.
  void see(const read::Event& e) {
    const auto copy = copying_.find(e.thread);
    if (copy != copying_.end()) {
      add({copy->second.ts_ns, e.ts_ns, copy->second.bytes});
      copying_.erase(copy);
    }
    if (e.bucket != Bucket::D2H || e.launch || e.failed || e.captured) return;
    if (copying_.size() == kMostThreads) no_thread_goes_on();
    copying_[e.thread] = {e.ts_ns, e.bytes};
  }
  // A collective, behind see(). `since`: null if it answers for none.
  void collective(std::int64_t ts_ns, Since* since, const Call& call) {
    add({ts_ns, 0, 0, since, true, call});
  }
  void end() {
    no_thread_goes_on();
    hand_on(items_.size());
    items_ = {};
  }

 private:
  static constexpr std::size_t kMost = 8192;       // more than threads call in the second or less
                                                   // by which their lines are out of order
  static constexpr std::size_t kMostThreads = 64;  // within a copy at a time
  // More is no value that somebody prints, but a checkpoint: the host has to write it.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Copy {
    std::int64_t ts_ns;
    std::uint64_t bytes;
  };
  // A copy and the wait behind it, or a collective.
  struct Item {
    std::int64_t ts_ns = 0;
    std::int64_t to_ns = 0;
    std::uint64_t bytes = 0;
    Since* since = nullptr;
    bool collective = false;
    Call call{};
  };

  void add(const Item& item) {
    items_.push_back(item);
    if (items_.size() == kMost) hand_on(kMost / 2);
  }
  void no_thread_goes_on() {
    for (const auto& [thread, copy] : copying_) add({copy.ts_ns, kNever, copy.bytes});
    copying_.clear();
  }
  void hand_on(std::size_t count) {
    std::ranges::stable_sort(items_, {}, &Item::ts_ns);
    for (std::size_t i = 0; i < count; ++i) take(items_[i]);
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  // A wait ends with whatever the rank calls next, on any thread: autograd has one of its own.
  void take(const Item& item) {
    const std::int64_t until = std::min(waits_until_, item.ts_ns);
    if (until > waits_from_) {  // unsigned: times in a file may be absurd
      all_.waited_ns += static_cast<std::uint64_t>(until) - static_cast<std::uint64_t>(waits_from_);
    }
    waits_from_ = item.ts_ns;
    waits_until_ = item.to_ns;
    all_.bytes += item.bytes;
    if (!item.collective) return;
    std::int64_t ns = 0;
    if (item.since != nullptr) {
      const std::uint64_t bytes = all_.bytes - item.since->bytes;
      if (bytes != 0 && bytes < kMostBytes) {
        ns = static_cast<std::int64_t>(
            std::clamp<std::uint64_t>(all_.waited_ns - item.since->waited_ns, 1, kNever));
      }
      *item.since = all_;
    }
    answer_(item.call, ns);
  }

  Answer answer_;
  std::map<std::int64_t, Copy> copying_;  // by thread: its last call
  std::vector<Item> items_;
  Since all_;
  std::int64_t waits_from_ = 0;  // behind the last copy, while it is the last call
  std::int64_t waits_until_ = 0;
};

}  // namespace tprof::diagnose
