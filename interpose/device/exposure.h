// Computes how much of each call's time on the device was exposed: the part in which no computation
// of the same device ran (as HTA defines it). It works from marks, which stand in the streams that
// compute around what they were busy with, and from the times of calls. All times are on the host's
// clock. This file knows nothing of CUDA.
//
// From the moment at which the host puts a mark behind work until the device reaches it, the device
// surely has something to do. Before that moment it may have been idle between any two launches,
// and samples tell for how long: marks behind launches that are drawn at random. A sample tells how
// long the stream was idle before the next launch, and others that follow each other as quickly
// leave it idle for as long on average. Without samples it is the middle, and if the bounds are
// farther apart than the error that we promise, the call is not known, and counts by its reason.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/device/intervals.h"
#include "interpose/format/ledger.h"
#include "interpose/format/ring_file.h"

namespace tprof::device {

// The host's own knowledge of how a stream was fed since its last mark.
struct Fed {
  // Its first launch was through at begins_ns (UINT64_MAX: there was none), first_ns behind the
  // launch before the last mark; the last one at last_ns.
  std::uint64_t begins_ns = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  // The last launch took long, from here on: nobody knows when in it its kernel began, nor whether
  // the stream ran dry meanwhile. 0: it did not.
  std::uint64_t slow_from_ns = 0;
  std::uint32_t launches = 0;
  // Counts of launches by how much later each returned than the one before, skipping the first and
  // a slow one.
  static constexpr std::uint32_t kGapKinds = 7;
  std::uint32_t gaps[kGapKinds] = {};

  // 0: shorter than this; each kind is twice as long as the one before.
  static constexpr std::uint64_t kShortestGapNs = 8192;
  static constexpr std::uint32_t gap_kind(std::uint64_t ns) {
    return std::min<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(ns / kShortestGapNs)),
                                   kGapKinds - 1);
  }
};

// A place in a stream that computes, and when the device reached it. Marks of one stream arrive in
// their order.
struct Mark : Fed {
  enum class Kind : std::uint8_t {
    opens,   // work of the stream begins
    closes,  // all that was put into the stream before is done, and then it waits or is idle
    passes,  // all that was put into the stream before is done; more work may follow at once
  };
  std::uint64_t stream = 0;  // an id that is unique in the process
  std::uint32_t device = 0;
  Kind kind = Kind::opens;
  // The stream was not followed before this mark: it may or may not have computed since the last
  // one.
  bool unseen_before = false;
  ExposureLost why = ExposureLost::no_pair;  // with unseen_before
  bool empty = false;                        // the stream was empty when the mark was put into it
  bool sample = false;                       // right behind a launch that was drawn at random
  // The host put it into the stream between these two.
  std::uint64_t enqueued_ns = 0;
  std::uint64_t made_ns = 0;
  std::uint64_t at_ns = 0;  // when the device reached it
};

struct CallSpan {
  std::uint64_t stream;
  std::uint32_t device;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  LedgerKey::Words key;
  std::uint64_t calls;
  bool copies = false;
};

// One call's verdict.
struct Exposed {
  LedgerKey::Words key;
  std::uint64_t calls;
  bool known;
  ExposureLost why;  // if it is not known
  std::uint64_t device_ns;
  std::uint64_t exposed_ns;
  bool late;  // more than kNoiseNs of it is certainly exposed
};

class Exposure {
 public:
  // Two events in a row with nothing between them are at most this far apart.
  static constexpr std::uint64_t kNoiseNs = 10'000;
  // A host that takes longer to make a mark was away, and its stream may have run dry meanwhile.
  static constexpr std::uint64_t kAwayNs = 50'000;
  // A known call's error is at most a twentieth of its device time plus 0.2 ms. Half of the
  // distance between the bounds may be as much as this; the rest is for the clocks.
  static constexpr std::uint64_t tolerance_ns(std::uint64_t device_ns) {
    return device_ns / 25 + 150'000;
  }

  // Begins a look at how far the devices have got. Streams without work are known until `now_ns`
  // (0: until the last look), unless a mark is still to come.
  void begin_reading(std::uint64_t now_ns);
  // These report what has no times yet in this look: a mark that the device has not reached, and a
  // call that began on the host at `since_ns`.
  void standing(const Mark& mark);
  void running(std::uint64_t since_ns) { keep_ns_ = std::min(keep_ns_, since_ns); }
  void mark(const Mark& mark);
  void missed(const Mark& mark, ExposureLost why);  // a mark whose time is not known
  void no_room() { no_room_ = true; }               // for another stream
  void call(const CallSpan& span);

  // Returns the time until which all is known of what devices computed: a bit for each.
  std::uint64_t known_until(std::uint32_t devices) const;
  // Finds when any of these devices computed in a time, in order: intervals that don't overlap.
  // Behind known_until() streams that may be busy are unsure.
  void computed(std::uint32_t devices, std::uint64_t from_ns, std::uint64_t to_ns,
                Pages<Interval>& found);

  // Calls f(Exposed) for each call about which all is known now. It leaves out copies on a stream
  // that has turned out to compute, since they are computation. `last`: nothing more will come.
  template <typename F>
  void settle(bool last, F&& f) {
    calls_.erase_if([&](const CallSpan& call) {
      const bool settled = last || call.end_ns <= known_until(bit_of(call.device));
      if (!settled) {
        keep_ns_ = std::min(keep_ns_, call.start_ns);
      } else if (!call.copies || known(call.stream, call.device) == nullptr) {
        f(judge(call));
      }
      return settled;
    });
    forget_before(keep_ns_);
  }

 private:
  struct Segment {
    std::uint64_t from_ns;
    std::uint64_t to_ns;
    bool certain;
    ExposureLost why;
    std::uint64_t busy_ns = kUnknown;  // of an uncertain one, as far as samples tell
    bool sampled() const { return busy_ns != kUnknown; }
  };
  static constexpr std::uint64_t kUnknown = UINT64_MAX;
  // Samples of one kind of gaps.
  struct Gaps {
    double samples = 0;
    double idle_ns = 0;  // of all of them
    double busy_ns = 0;
  };
  struct Stream {
    std::uint64_t stream{};
    std::uint32_t device{};
    bool open{};
    bool standing{};  // this look found a mark that the device has not reached
    bool missed{};    // a mark's time is not known
    ExposureLost why{};
    std::uint64_t enqueued_ns{};  // of the first standing mark
    std::uint64_t last_ns{};      // of the last mark
    Pages<Segment> segments;
    bool sampled{};  // the last mark was a sample, and the device kept up with the host
    std::uint64_t sample_end_ns{};   // when the launch before it was through
    std::uint64_t sample_cost_ns{};  // how long the host took to make it
    Gaps gaps[Mark::kGapKinds];
    double launches{};  // the latest ones of which it is known how long they took the device
    double busy_ns{};   // and how long that was
  };
  static constexpr std::uint32_t kStreams = 256;
  static constexpr std::size_t kMostSegments = 1 << 16;  // per stream

  Stream* known(std::uint64_t stream, std::uint32_t device);  // null: no mark of it was seen
  Stream* find(std::uint64_t stream, std::uint32_t device);   // or a new one; null: no room
  void add(Stream& s, const Segment& next);
  void fed(Stream& s, const Mark& mark, std::uint64_t at_ns);
  void ran_dry(Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, double busy_ns);
  static void count_sample(Stream& s, const Mark& next);
  static void count_busy(Stream& s, double launches, double ns);
  static double idle_between(const Stream& s, const Mark& mark);  // < 0: unknown
  static constexpr std::uint32_t bit_of(std::uint32_t device) { return 1U << device; }
  static const Segment* segment_at(const Stream& s, std::uint64_t ns);
  Exposed judge(const CallSpan& call);
  void forget_before(std::uint64_t ns);

  Stream stream_[kStreams] = {};
  std::uint32_t streams_ = 0;
  bool no_room_ = false;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t keep_ns_ = UINT64_MAX;
  std::uint64_t forgotten_ns_ = 0;  // segments before this are missing
  Pages<CallSpan> calls_;
  // judge() and computed() fill these anew.
  Pages<Interval> certain_;
  Pages<Interval> possible_;
};

}  // namespace tprof::device
