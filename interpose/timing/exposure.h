// How much of the device's time of calls computation stood still for: from the times of calls and
// of waits for them, all on the host's clock. Knows nothing of CUDA.
//
// A wait stands for a call, and for those before it on its stream: what it overlaps of their time
// was exposed, the rest hidden. Of streams only those count that compute: a side stream waits for
// every call at once (c10d's, FSDP's), hands on to the stream that computes when it is needed, and
// has no work that could stand still. Which streams compute shows in what they do between the
// events that we record there, without a look at a single kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/base/pages.h"
#include "interpose/format/ledger.h"

namespace tprof::timing {

// What a stream did between two events of ours. Numbers of calls and waits are of one row; a later
// one is larger. A stream is a number that no other stream of the process has; 0: none.
struct Span {
  std::uint64_t number;
  std::uint64_t stream;
  std::uint64_t enqueued_ns;  // when the host had it in the stream
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

struct TimedSpan : Span {
  LedgerKey::Words key;
  std::uint64_t calls;
};

struct Wait : Span {  // of stream 0: a thread of the program waits
  static constexpr std::uint32_t kStreams = 3;
  std::uint64_t call;               // that it waits for, as the last of its stream
  std::uint64_t through[kStreams];  // streams that waited for the call, and that it waits for
};

// What became known of a call: sums to add to what was known of its row.
struct Exposed {
  LedgerKey::Words key;
  std::uint64_t calls;      // are now known to be waited for,
  std::uint64_t waited_ns;  // and took that long
  std::uint64_t exposed_ns;
  std::uint64_t longest_ns;  // that was exposed of a call so far
  std::uint64_t late;        // calls of which more than kNoiseNs are exposed, now
};

class Exposure {
 public:
  // Two events in a row are no farther apart where nothing is between them.
  static constexpr std::uint64_t kNoiseNs = 10'000;

  void call(const TimedSpan& span);
  void wait(const Wait& wait);

  // Calls f(Exposed) for what is known now. `last`: nothing more will come.
  template <typename F>
  void settle(bool last, F&& f) {
    std::size_t kept = 0;
    for (const Wait& wait : held_) {
      if (!last && !is_ripe(wait)) {
        held_.data()[kept++] = wait;
      } else if (counts(wait)) {
        cover(wait, f);
      }
    }
    held_.cut(kept);
  }

 private:
  struct Call {
    TimedSpan span;
    std::uint64_t before;  // the number of the one before it on its stream
    std::uint64_t exposed_ns;
    std::uint64_t covered_until;
    bool waited;
  };
  struct Stream {
    std::uint64_t stream;
    std::uint64_t last_call;  // its number
    std::uint64_t end_ns;     // of the last span
    std::uint64_t busy_ns;    // between spans, where the next was enqueued before the last ended
  };

  static constexpr std::uint32_t kCalls = 16384;
  static constexpr std::uint32_t kStreams = 256;
  // What a stream is shows after some of its work, and calls are read stream by stream.
  static constexpr std::uint64_t kRipeNs = 1'000'000'000;
  // A stream with less work than this part of the busiest one's only serves it.
  static constexpr std::uint64_t kServes = 4;

  Call* find_call(std::uint64_t number) {
    Call& c = call_[number % kCalls];
    return number != 0 && c.span.number == number ? &c : nullptr;
  }
  Stream& entry(const Span& span);
  bool computes(std::uint64_t stream) const;
  bool is_ripe(const Wait& wait) const { return wait.end_ns + kRipeNs <= newest_ns_; }
  bool counts(const Wait& wait) const;

  template <typename F>
  void cover(const Wait& wait, F& f) {
    for (Call* c = find_call(wait.call); c != nullptr; c = find_call(c->before)) {
      Exposed found{c->span.key, 0, 0, 0, 0, 0};
      const bool first = !std::exchange(c->waited, true);
      if (first) {
        found.calls = c->span.calls;
        found.waited_ns = c->span.end_ns - c->span.start_ns;
      }
      // From where nobody counted yet: two that stand still at one time are counted once.
      const std::uint64_t from = std::max({wait.start_ns, c->span.start_ns, c->covered_until});
      const std::uint64_t to = std::min(wait.end_ns, c->span.end_ns);
      if (to > from) {
        const bool was_late = c->exposed_ns > kNoiseNs;
        found.exposed_ns = to - from;
        c->exposed_ns += to - from;
        c->covered_until = to;
        found.late = !was_late && c->exposed_ns > kNoiseNs ? c->span.calls : 0;
        found.longest_ns = c->exposed_ns / c->span.calls;
      }
      if (found.calls + found.exposed_ns != 0) f(found);
      if (!first) return;  // and so were those before it
    }
  }

  Call call_[kCalls] = {};
  Stream stream_[kStreams] = {};
  std::uint64_t newest_ns_ = 0;
  std::uint64_t most_busy_ns_ = 0;
  Pages<Wait> held_;
};

}  // namespace tprof::timing
