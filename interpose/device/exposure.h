// Computes how much of each call's device time was exposed: the part in which the same device did
// not compute (as HTA defines it). The input are marks, placed before and after the work of
// computing streams, and the times of calls. All times are on the host's clock. This file does not
// depend on CUDA.
//
// The device surely works from the moment when the host puts a mark after work until the device
// reaches the mark. Before that it may have been idle between any two launches. Samples, marks
// after randomly chosen launches, measure how long the stream is idle before the next launch;
// launches at the same distance are assumed to leave it idle for as long on average. Without
// samples the middle of the bounds is taken. If the bounds are farther apart than the promised
// error, the call is not known, and counts by its reason.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "interpose/base/pages.h"
#include "interpose/device/intervals.h"
#include "interpose/format/ledger.h"
#include "interpose/format/ring_file.h"

namespace tprof::device {

// The host's knowledge of the launches in a stream since its last mark.
struct LaunchesSinceMark {
  // The first launch returned at begins_ns (UINT64_MAX: none), first_ns after the launch before the
  // last mark; the last one at last_ns.
  std::uint64_t begins_ns = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  // The last launch was slow, from here on: it is unknown when its kernel began, and whether the
  // stream ran dry meanwhile. 0: it was not.
  std::uint64_t slow_from_ns = 0;
  std::uint32_t launches = 0;
  // Counts of launches by how much later each returned than the one before, skipping the first and
  // a slow one.
  static constexpr std::uint32_t kGapKinds = 7;
  std::uint32_t gaps[kGapKinds] = {};

  // Kind 0 is shorter than this; each kind is twice as long as the previous one.
  static constexpr std::uint64_t kShortestGapNs = 8192;
  static constexpr std::uint32_t gap_kind(std::uint64_t ns) {
    return std::min<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(ns / kShortestGapNs)),
                                   kGapKinds - 1);
  }
};

// A place in a computing stream, and the time when the device reached it. Marks of one stream
// arrive in order.
struct Mark : LaunchesSinceMark {
  enum class Kind : std::uint8_t {
    opens,   // work of the stream begins
    closes,  // all earlier work is done, and the stream then waits or is idle
    passes,  // all earlier work is done; more may follow at once
  };
  std::uint64_t stream = 0;  // an id that is unique in the process
  std::uint32_t device = 0;
  Kind kind = Kind::opens;
  // The stream was not followed before this mark: it may have computed since the last one.
  bool unseen_before = false;
  ExposureLost why = ExposureLost::no_pair;  // with unseen_before
  bool empty = false;                        // the stream was empty when the mark was put into it
  bool sample = false;                       // right after a randomly chosen launch
  // The host put it into the stream between these two times.
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

// The result for one call.
struct Exposed {
  LedgerKey::Words key;
  std::uint64_t calls;
  bool known;
  ExposureLost why;  // the reason if it is not known
  std::uint64_t device_ns;
  std::uint64_t exposed_ns;
  bool late;  // certainly more than kNoiseNs of it is exposed
};

class Exposure {
 public:
  // Two adjacent events are at most this far apart.
  static constexpr std::uint64_t kNoiseNs = 10'000;
  // If the host takes longer to make a mark, it was interrupted, and its stream may have run dry.
  static constexpr std::uint64_t kAwayNs = 50'000;
  // A known call's error is at most a twentieth of its device time plus 0.2 ms. Half of the
  // distance between the bounds may be this much; the rest is for the clocks.
  static constexpr std::uint64_t tolerance_ns(std::uint64_t device_ns) {
    return device_ns / 25 + 150'000;
  }

  // Begins a reading of the devices' progress. Streams without work are known until `now_ns` (0:
  // until the last reading), unless a mark is pending.
  void begin_reading(std::uint64_t now_ns);
  // These report what has no time yet in this reading: a mark that the device has not reached, and
  // a call that began on the host at `since_ns`.
  void standing(const Mark& mark);
  void running(std::uint64_t since_ns) { keep_ns_ = std::min(keep_ns_, since_ns); }
  void mark(const Mark& mark);
  void missed(const Mark& mark, ExposureLost why);  // a mark whose time is not known
  void no_room() { no_room_ = true; }               // for another stream
  void call(const CallSpan& span);

  // Returns the time until which all computation of `devices` (a bit for each) is known.
  std::uint64_t known_until(std::uint32_t devices) const;
  // Finds when any of these devices computed in a period: ordered intervals that don't overlap.
  // After known_until(), streams that may be busy are unsure.
  void computed(std::uint32_t devices, std::uint64_t from_ns, std::uint64_t to_ns,
                Pages<Interval>& found);

  // Calls f(Exposed) for each call about which everything is known now, except copies on a
  // computing stream, which are computation. `last`: nothing more will come.
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
    std::uint64_t busy_ns = kUnknown;  // of an uncertain one, from samples
    bool sampled() const { return busy_ns != kUnknown; }
  };
  static constexpr std::uint64_t kUnknown = UINT64_MAX;
  // Samples of one kind of gap.
  struct Gaps {
    double samples = 0;
    double idle_ns = 0;  // in total
    double busy_ns = 0;
  };
  struct Stream {
    std::uint64_t stream{};
    std::uint32_t device{};
    bool open{};
    bool standing{};  // this reading found a mark that the device has not reached
    bool missed{};    // a mark's time is not known
    ExposureLost why{};
    std::uint64_t enqueued_ns{};  // of the first standing mark
    std::uint64_t last_ns{};      // of the last mark
    Pages<Segment> segments;
    bool sampled{};  // the last mark was a sample, and the device kept up with the host
    std::uint64_t sample_end_ns{};   // when the launch before it was done
    std::uint64_t sample_cost_ns{};  // how long the host took to make it
    Gaps gaps[Mark::kGapKinds];
    double launches{};  // recent launches with known device time
    double busy_ns{};   // and their device time
  };
  static constexpr std::uint32_t kStreams = 256;
  static constexpr std::size_t kMostSegments = 1 << 16;  // per stream

  Stream* known(std::uint64_t stream, std::uint32_t device);  // null: no mark seen yet
  Stream* find(std::uint64_t stream, std::uint32_t device);   // adds it if new; null: no room
  void add(Stream& s, const Segment& next);
  void fed(Stream& s, const Mark& mark, std::uint64_t at_ns);
  void ran_dry(Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, double busy_ns);
  static void count_sample(Stream& s, const Mark& next);
  static void count_busy(Stream& s, double launches, double ns);
  static double idle_between(const Stream& s, const Mark& mark);  // < 0: unknown
  static constexpr std::uint32_t bit_of(std::uint32_t device) { return 1U << device; }
  // Calls f(piece, segment) for what the stream computed, or may have, in a period. Null: nothing
  // is known of that piece.
  template <typename F>
  static void each_piece(const Stream& s, std::uint64_t from_ns, std::uint64_t to_ns, F&& f);
  static std::uint64_t unknown_from(const Stream& s);  // UINT64_MAX: all is known
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
